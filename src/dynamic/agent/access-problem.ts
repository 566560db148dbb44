import { isJsonObject, parseJsonObject } from '../../base/json.ts';

/** A request of the agent that the API server refuses. */
export interface AccessProblem {
  /** Verb and kind: `read Node`, `write Node/status`, `read ConfigMap`. */
  readonly request: string;
  readonly code: string;
  /** The message of the error. */
  readonly why: string;
  /** Time of the first refusal, in milliseconds since 1970. */
  readonly since: number;
}

/** Only an agent that watches a ConfigMap makes this request. */
export const READ_CONFIG_MAP = 'read ConfigMap';

/** Whether two lists hold the same problems, ignoring times. */
export function sameAccess(a: readonly AccessProblem[], b: readonly AccessProblem[]): boolean {
  const keys = (list: readonly AccessProblem[]): string => JSON.stringify(list.map(({ request, code }) => `${request} ${code}`).sort());
  return keys(a) === keys(b);
}

/** One line: `since 2030-01-01T00:00:00Z the API server does not allow the agent to read Node: Unauthorized`. */
export function describeAccess({ request, why, since }: AccessProblem): string {
  return `since ${new Date(since).toISOString().replace(/\.\d+/, '')} the API server does not allow the agent to ${request}: ${why}`;
}

/** The text of the file that stores the problems next to the agent's state. */
export function formatAccess(problems: readonly AccessProblem[]): string {
  return `${JSON.stringify({ problems })}\n`;
}

/** Reads that file; empty for an invalid text. */
export function parseAccess(text: string): readonly AccessProblem[] {
  const list = parseJsonObject(text)?.problems;
  if (!Array.isArray(list)) return [];
  return list.flatMap((one) => {
    if (!isJsonObject(one)) return [];
    const { request, code, why, since } = one;
    const isWhole = typeof request === 'string' && typeof code === 'string' && typeof why === 'string' && Number.isFinite(since);
    return isWhole ? [{ request, code, why, since: Number(since) }] : [];
  });
}
