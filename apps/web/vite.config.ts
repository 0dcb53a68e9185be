import { resolve } from "node:path"
import react from "@vitejs/plugin-react"
import { defineConfig } from "vite"

// Whoever builds it gets the same page: without this, a build that a test run starts would be the slow React that does everything twice.
process.env["NODE_ENV"] = "production"

/** The page. `npm start` builds it into `dist/web`; what is split off is loaded when it is opened. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  build: {
    outDir: resolve(import.meta.dirname, "../../dist/web"),
    emptyOutDir: true,
    target: "es2023",
    // Nothing in the page may be inline: the policy it is served with forbids it.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The second is the gateway's: a terminal as a page of its own.
    rolldownOptions: { input: ["index.html", "ttyd.html"].map((name) => resolve(import.meta.dirname, name)) },
    reportCompressedSize: false,
    // The editor and the terminal are large, and loaded only when they are opened.
    chunkSizeWarningLimit: 1_000,
  },
})
