import type { ReactElement } from "react"
import { isAsleep } from "../asleep.tsx"
import type { TabProps } from "../tabs.ts"
import { Facts } from "./facts.tsx"
import { NetworkSection } from "./network-section.tsx"
import { PostureSection } from "./posture.tsx"
import { SnapshotsSection } from "./snapshots-section.tsx"
import { UsageSection } from "./usage-section.tsx"
import "../../style/pages.css"
import "../../style/details.css"

/** How it is shut in, what it uses, what it may reach, and what it was. */
export default function DetailsTab({ session }: TabProps): ReactElement {
  const isAwake = !isAsleep(session)
  return (
    <div className="details">
      {isAwake && <UsageSection session={session} />}
      {isAwake && <PostureSection session={session} />}
      <NetworkSection session={session} />
      <SnapshotsSection session={session} />
      <Facts session={session} />
    </div>
  )
}
