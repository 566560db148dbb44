import { parseJsonObject } from '../../base/json.ts';
import type { ConfigCondition } from './status.ts';

/**
 * What the agent writes into an annotation in the same request as the status: the condition that belongs to it. The condition itself is written by a request
 * of its own, to the subresource `status`, just before. A reader that finds another condition on the Node looks between the two requests.
 */
export interface ConfigReport {
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** Whether the running kubelet was observed with what the status calls active. */
  readonly observed: boolean;
  /** When it was written, in RFC 3339. */
  readonly at: string;
  /** Since when the status has its error; null: it has none. */
  readonly errorSince: string | null;
}

/** The report that belongs to a condition. @param before the one on the Node: its times stay where nothing changed */
export function nextReport(before: ConfigReport | null, { condition, observed, error, errorBefore, at }: NextReport): ConfigReport {
  const { status, reason, message } = condition;
  const kept = error === errorBefore ? (before?.errorSince ?? null) : null;
  const report = { status, reason, message, observed, at, errorSince: error === null ? null : (kept ?? at) };
  return before !== null && describes(before, condition) && before.observed === observed && before.errorSince === report.errorSince
    ? before
    : report;
}

export interface NextReport {
  readonly condition: ConfigCondition;
  readonly observed: boolean;
  readonly error: string | null;
  /** The error of the status that is on the Node. */
  readonly errorBefore: string | null;
  readonly at: string;
}

/** Whether a condition is the one that a report was written with. */
export function describes(
  report: ConfigReport,
  condition: { readonly status?: string; readonly reason?: string; readonly message?: string },
): boolean {
  return report.status === condition.status && report.reason === condition.reason && report.message === condition.message;
}

/** The text of the annotation. */
export function formatReport({ status, reason, message, observed, at, errorSince }: ConfigReport): string {
  return JSON.stringify({ at, ...(errorSince === null ? {} : { errorSince }), message, observed, reason, status });
}

/** Reads the annotation; null: there is none, as of earlier versions, or it is none of ours. */
export function parseReport(text: string | undefined): ConfigReport | null {
  const { status, reason, message, observed, at, errorSince } = parseJsonObject(text ?? '') ?? {};
  if (typeof status !== 'string' || typeof reason !== 'string' || typeof message !== 'string' || typeof at !== 'string') return null;
  return { status, reason, message, observed: observed === true, at, errorSince: typeof errorSince === 'string' ? errorSince : null };
}
