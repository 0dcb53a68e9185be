export interface Size {
  readonly cols: number
  readonly rows: number
}

interface Member {
  resized(size: Size): void
}

/** Who looks at one terminal. Its size is whoever's said one last, and everybody is told. */
export class Audience {
  readonly #members = new Set<Member>()
  #size: Size | undefined

  get viewers(): number {
    return this.#members.size
  }

  get size(): Size | undefined {
    return this.#size
  }

  enter(member: Member): void {
    this.#members.add(member)
  }

  leave(member: Member): void {
    this.#members.delete(member)
  }

  resize({ cols, rows }: Size, by?: Member): void {
    const isSame = this.#size?.cols === cols && this.#size.rows === rows
    this.#size = { cols, rows }
    if (!isSame) for (const member of this.#members) if (member !== by) member.resized(this.#size)
  }
}
