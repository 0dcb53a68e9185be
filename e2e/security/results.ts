/** Tests of packages have something to say, too, and know nothing of this folder. */
export { record } from "@warren/base/testing/results.ts"
