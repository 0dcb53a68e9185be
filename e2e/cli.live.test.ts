import { afterAll, beforeAll, describe } from "vitest"
import { copies } from "./cli/copies.ts"
import { json } from "./cli/json.ts"
import { keptThings } from "./cli/kept-things.ts"
import { ports } from "./cli/ports.ts"
import { programs } from "./cli/programs.ts"
import { sessions } from "./cli/sessions.ts"
import { terminals } from "./cli/terminals.ts"
import { CliWorld } from "./cli/world.ts"

// One Warren for all of it: each file would have to install and start another.
const world = new CliWorld()
beforeAll(() => world.open())
afterAll(() => world[Symbol.asyncDispose]())

describe("warren run", () => {
  programs(world)
})
describe("on a terminal", () => {
  terminals(world)
})
describe("sessions", () => {
  sessions(world)
})
describe("cp", () => {
  copies(world)
})
describe("forward", () => {
  ports(world)
})
describe("images, workspaces, secrets, memory", () => {
  keptThings(world)
})
describe("--json", () => {
  json(world)
})
