/** The adapter of the public benchmark, as it is published. Here, because here it is installed. */
export { e2b } from "@computesdk/e2b"
