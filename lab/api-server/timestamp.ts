/** A time in the API's format: UTC, whole seconds. */
export function timestamp(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}
