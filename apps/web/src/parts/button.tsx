import type { ButtonHTMLAttributes, ReactElement, ReactNode } from "react"
import { Icon, type IconName } from "./icon.tsx"

interface ButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "children"> {
  readonly kind?: "plain" | "main" | "danger" | "quiet"
  readonly size?: "usual" | "small"
  readonly icon?: IconName
  /** What it asked for is under way: it cannot be pressed twice. */
  readonly isBusy?: boolean
  readonly children?: ReactNode
}

/** Without children it is an icon, and needs an `aria-label`. */
export function Button({
  kind = "plain",
  size = "usual",
  icon,
  isBusy = false,
  children,
  ...rest
}: ButtonProps): ReactElement {
  const isIcon = icon !== undefined && children === undefined
  return (
    <button
      type="button"
      {...rest}
      aria-busy={isBusy || undefined}
      className={`button ${rest.className ?? ""}`}
      data-icon={isIcon || undefined}
      data-kind={kind}
      data-size={size}
      disabled={rest.disabled === true || isBusy}
      title={rest.title ?? (isIcon ? rest["aria-label"] : undefined)}
    >
      {icon && <Icon name={icon} size={size === "small" ? 14 : 16} />}
      {children}
    </button>
  )
}
