import type { ReactElement } from "react"
import { Link, useLocation } from "wouter"

interface SubPlacesProps {
  readonly name: string
  /** The first is also shown at the path above them. */
  readonly places: readonly (readonly [path: string, title: string])[]
}

/** The pages of a page. */
export function SubPlaces({ name, places }: SubPlacesProps): ReactElement {
  const [location] = useLocation()
  const here = places.find(([path]) => path === location) ?? places[0]
  return (
    <nav aria-label={name} className="sub-places">
      {places.map(([path, title]) => (
        <Link aria-current={path === here?.[0] ? "page" : undefined} href={path} key={path}>
          {title}
        </Link>
      ))}
    </nav>
  )
}
