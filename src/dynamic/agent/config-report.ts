import { z } from 'zod';
import { parseJsonObject } from '../../base/json.ts';
import type { ConfigCondition } from './status.ts';

const optional = z.string().nullable().catch(null);
const REPORT = z.object({
  status: z.string(),
  reason: z.string(),
  message: z.string(),
  /** Whether the running kubelet was observed with the active configuration of the status. */
  observed: z.boolean().catch(false),
  /** Time of writing, in RFC 3339. */
  at: z.string(),
  /** Time since which the status has its error; null: no error. */
  errorSince: optional,
  /**
   * Expected end of the trial in progress, in RFC 3339: when the configuration becomes the last known good if it stays
   * healthy; null: no trial, a trial that is paused, or an earlier version of the agent.
   */
  trialEnds: optional.transform((time) => (Number.isNaN(Date.parse(time ?? '')) ? null : time)),
  /** The agent accepts only signed ConfigMaps. */
  requiresSignature: z.boolean().catch(false),
});

/**
 * Annotation that the agent writes in the same request as the status; it repeats the condition that belongs
 * to the status. The condition itself is written just before, by a request to the subresource `status`. A
 * reader that finds another condition on the Node has read it between the two requests.
 */
export type ConfigReport = z.infer<typeof REPORT>;

/** A later estimate of the end of a trial is written if it differs by more than this: a healthy trial writes it once. */
const TRIAL_END_TOLERANCE_MS = 15_000;

/**
 * The report for a condition.
 * @param before report on the Node: unchanged parts keep their times
 * @param next.errorBefore error in the status on the Node
 */
export function nextReport(
  before: ConfigReport | null,
  {
    condition,
    error,
    errorBefore,
    ...next
  }: Pick<ConfigReport, 'observed' | 'trialEnds' | 'requiresSignature' | 'at'> & {
    readonly condition: ConfigCondition;
    readonly error: string | null;
    readonly errorBefore: string | null;
  },
): ConfigReport {
  const { observed, trialEnds, requiresSignature, at } = next;
  const kept = error === errorBefore ? (before?.errorSince ?? null) : null;
  const report = { ...condition, observed, at, errorSince: error === null ? null : (kept ?? at), trialEnds, requiresSignature };
  const isSame =
    before !== null &&
    isConditionOf(before, condition) &&
    before.observed === observed &&
    before.requiresSignature === requiresSignature &&
    before.errorSince === report.errorSince &&
    isSameEnd(before.trialEnds, trialEnds);
  return isSame ? before : report;
}

function isSameEnd(before: string | null, now: string | null): boolean {
  if (before === null || now === null) return before === now;
  return Math.abs(Date.parse(before) - Date.parse(now)) <= TRIAL_END_TOLERANCE_MS;
}

/** Whether a condition is the one that a report was written with. */
export function isConditionOf(report: ConfigReport, condition: Partial<Record<keyof ConfigCondition, string>>): boolean {
  return report.status === condition.status && report.reason === condition.reason && report.message === condition.message;
}

/** The text of the annotation. */
export function formatReport({ status, reason, message, observed, at, errorSince, trialEnds, requiresSignature }: ConfigReport): string {
  const times = { ...(errorSince === null ? {} : { errorSince }), ...(trialEnds === null ? {} : { trialEnds }) };
  return JSON.stringify({ at, ...times, message, observed, reason, ...(requiresSignature ? { requiresSignature } : {}), status });
}

/** Reads the annotation; null: missing, as with earlier versions, or invalid. */
export function parseReport(text: string | undefined): ConfigReport | null {
  return REPORT.safeParse(parseJsonObject(text ?? '')).data ?? null;
}
