import type { Output } from "@warren/sdk/routes.ts"
import { useState, type ReactElement } from "react"
import { Link } from "wouter"
import { useAccount } from "../../data/account.ts"
import { usePages } from "../../data/pages.ts"
import { useAsk } from "../../data/query.ts"
import { Confirm } from "../../parts/confirm.tsx"
import { Menu, MenuItem } from "../../parts/menu.tsx"
import { When } from "../../parts/when.tsx"
import { List, More } from "../page.tsx"
import { AdminPage } from "./admin-page.tsx"
import { QuotaDialog } from "./quota-dialog.tsx"
import { Table } from "../../parts/table.tsx"

type User = Output<"GET /v1/users">["items"][number]

export default function Users(): ReactElement {
  const pages = usePages("GET /v1/users", {})
  return (
    <AdminPage>
      <section className="section">
        <header>
          <h2>Users</h2>
          <Link className="button" data-kind="main" href="/admin/invites">
            Invite somebody
          </Link>
        </header>
        <List {...pages} empty={<p className="soft">Nobody yet.</p>}>
          {(items) => <UserTable items={items} />}
        </List>
        <More pages={pages} />
      </section>
    </AdminPage>
  )
}

function UserTable({ items }: { readonly items: readonly User[] }): ReactElement {
  const [dialog, open] = useState<{ readonly user: User; readonly what: "quota" | "delete" }>()
  const close = (): void => open(undefined)
  const remove = useAsk("DELETE /v1/users/{name}", { renews: ["GET /v1/users"], done: close })
  return (
    // Not in a room that scrolls: a menu of the last row would be cut off by it.
    <div className="table-room" data-still>
      <Table hasActions heads={["Name", "Role", { name: "Since", isWide: true }]}>
        {items.map((user) => (
          <UserRow key={user.id} open={(what) => open({ user, what })} user={user} />
        ))}
      </Table>
      {dialog?.what === "quota" && <QuotaDialog close={close} name={dialog.user.name} />}
      {dialog?.what === "delete" && (
        <Confirm
          act="Delete user"
          close={close}
          isBusy={remove.isPending}
          title={`Delete ${dialog.user.name}?`}
          yes={() => remove.mutate({ name: dialog.user.name })}
        >
          Their tokens and sign-ins end at once. What their runner keeps is not touched.
        </Confirm>
      )}
    </div>
  )
}

function UserRow({ user, open }: { readonly user: User; open(what: "quota" | "delete"): void }): ReactElement {
  const account = useAccount()
  const update = useAsk("PATCH /v1/users/{name}", { renews: ["GET /v1/users"] })
  const { name, role, isDisabled, createdAt } = user
  const isSelf = account?.user.id === user.id
  return (
    <tr>
      <td>
        {name} {isSelf && <span className="badge">you</span>}{" "}
        {isDisabled && (
          <span className="badge" data-kind="warn">
            disabled
          </span>
        )}
      </td>
      <td className="soft">{role}</td>
      <td className="soft wide-only">
        <When at={createdAt} />
      </td>
      <td className="ends">
        <Menu name={`Actions for ${name}`}>
          <MenuItem act={() => open("quota")} icon="gear">
            Quota…
          </MenuItem>
          {!isSelf && (
            <>
              <MenuItem act={() => update.mutate({ name, role: role === "admin" ? "member" : "admin" })} icon="people">
                {role === "admin" ? "Make a member" : "Make an admin"}
              </MenuItem>
              <MenuItem
                act={() => update.mutate({ name, isDisabled: !isDisabled })}
                icon={isDisabled ? "play" : "pause"}
              >
                {isDisabled ? "Let in again" : "Disable"}
              </MenuItem>
              <hr />
              <MenuItem act={() => open("delete")} icon="trash" isDanger>
                Delete…
              </MenuItem>
            </>
          )}
        </Menu>
      </td>
    </tr>
  )
}
