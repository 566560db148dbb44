/** True for `npm run test:thorough`: every point and many random inputs, where the other commands test a sample. */
export const THOROUGH = process.env.TEST_THOROUGH === '1';

/** The number of random inputs of a property test: a fifth of `thorough`, except for `npm run test:thorough`. */
export function numberOfRuns(thorough: number): number {
  return THOROUGH ? thorough : Math.ceil(thorough / 5);
}
