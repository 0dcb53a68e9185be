import type { Output } from "@warren/sdk/routes.ts"
import { useState, type ReactElement } from "react"
import { useAsk } from "../../data/query.ts"
import { Confirm } from "../../parts/confirm.tsx"
import { Menu, MenuItem } from "../../parts/menu.tsx"
import { toast } from "../../parts/toast.tsx"
import { download } from "./content.ts"
import type { TreeContext } from "./file-tree.tsx"

interface FileMenuProps {
  readonly context: TreeContext
  readonly entry: Output<"GET /v1/sessions/{session}/files/stat">
}

/** What can be done with one line of the tree. */
export function FileMenu({ context, entry: { path, name, type } }: FileMenuProps): ReactElement {
  const { session, changed } = context
  const [isDoomed, doom] = useState(false)
  const remove = useAsk("DELETE /v1/sessions/{session}/files", {
    renews: ["GET /v1/sessions/{session}/files"],
    done: () => {
      doom(false)
      changed(path)
    },
  })
  const isFolder = type === "dir"
  return (
    <>
      <Menu name={`Actions for ${name}`}>
        {isFolder ? (
          <>
            <MenuItem act={() => context.name({ what: "file", folder: path })} icon="plus">
              New file…
            </MenuItem>
            <MenuItem act={() => context.name({ what: "folder", folder: path })} icon="folder">
              New folder…
            </MenuItem>
          </>
        ) : (
          <MenuItem act={() => void download(session, path).catch(toast.fault)} icon="download">
            Download
          </MenuItem>
        )}
        <MenuItem act={() => context.name({ what: "rename", path })} icon="edit">
          Rename…
        </MenuItem>
        <hr />
        <MenuItem act={() => doom(true)} icon="trash" isDanger>
          Delete…
        </MenuItem>
      </Menu>
      {isDoomed && (
        <Confirm
          act="Delete it"
          close={() => doom(false)}
          isBusy={remove.isPending}
          title={`Delete ${name}?`}
          yes={() => remove.mutate({ session, path, recursive: isFolder })}
        >
          {isFolder ? "The folder goes with everything in it." : "The file goes."} A snapshot that was made before still
          has it.
        </Confirm>
      )}
    </>
  )
}
