import {
  useId,
  type InputHTMLAttributes,
  type ReactElement,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
} from "react"

interface About {
  readonly name: string
  /** What it means, in a few words below it. */
  readonly said?: ReactNode
  /** Why what stands in it cannot be. */
  readonly wrong?: string | undefined
}

function Around({
  id,
  name,
  said,
  wrong,
  children,
}: About & { readonly id: string; readonly children: ReactNode }): ReactElement {
  return (
    <div className="field">
      <label htmlFor={id}>{name}</label>
      {children}
      {wrong ? (
        <span className="wrong" id={`${id}-said`} role="alert">
          {wrong}
        </span>
      ) : (
        said && (
          <span className="said" id={`${id}-said`}>
            {said}
          </span>
        )
      )}
    </div>
  )
}

export function Field({
  name,
  said,
  wrong,
  ...rest
}: About & Omit<InputHTMLAttributes<HTMLInputElement>, "name">): ReactElement {
  const id = useId()
  return (
    <Around id={id} name={name} said={said} wrong={wrong}>
      <input
        {...rest}
        aria-describedby={said || wrong ? `${id}-said` : undefined}
        aria-invalid={wrong ? true : undefined}
        className="input"
        id={id}
      />
    </Around>
  )
}

export function TextField({
  name,
  said,
  wrong,
  ...rest
}: About & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "name">): ReactElement {
  const id = useId()
  return (
    <Around id={id} name={name} said={said} wrong={wrong}>
      <textarea {...rest} aria-invalid={wrong ? true : undefined} className="input" id={id} />
    </Around>
  )
}

export function SelectField({
  name,
  said,
  wrong,
  children,
  ...rest
}: About & Omit<SelectHTMLAttributes<HTMLSelectElement>, "name">): ReactElement {
  const id = useId()
  return (
    <Around id={id} name={name} said={said} wrong={wrong}>
      <select {...rest} className="input" id={id}>
        {children}
      </select>
    </Around>
  )
}
