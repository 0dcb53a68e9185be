import { QueryClientProvider } from "@tanstack/react-query"
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { App } from "./app.tsx"
import { queries } from "./data/query.ts"
import { applySavedTheme } from "./frame/theme.ts"
import "./style/tokens.css"
import "./style/base.css"
import "./style/controls.css"
import "./style/frame.css"

applySavedTheme()
const place = document.getElementById("page")
if (place) {
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  )
}
