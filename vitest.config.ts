import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: [
      "packages/**/*.test.ts",
      "apps/**/*.test.ts",
      "tools/**/*.test.ts",
      "bench/**/*.test.ts",
      "e2e/**/*.test.ts",
      "init/**/*.test.ts",
      "launch/**/*.test.ts",
      "confine/**/*.test.ts",
    ],
    setupFiles: ["tools/host-guard.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
  },
})
