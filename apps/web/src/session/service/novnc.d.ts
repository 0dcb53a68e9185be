/** As much of it as is used here; it comes without types. */
declare module "@novnc/novnc" {
  export default class RFB extends EventTarget {
    constructor(place: HTMLElement, address: string, options?: { readonly wsProtocols?: readonly string[] })
    scaleViewport: boolean
    /** As CSS has it. */
    background: string
    viewOnly: boolean
    disconnect(): void
  }
}
