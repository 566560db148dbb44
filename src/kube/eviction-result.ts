import { isJsonObject, type JsonObject } from '../base/json.ts';
import { upTo } from '../base/text/up-to.ts';
import type { EvictionResult } from './cluster.ts';
import { clusterRefused } from './cluster-problems.ts';

/**
 * Reads the response to an eviction.
 * @throws AppError for refusals that no later attempt overcomes
 */
export function evictionResult(what: string, name: string, httpStatus: number, body: JsonObject): EvictionResult {
  const [reason, message] = [textOf(body.reason), textOf(body.message)];
  const details = isJsonObject(body.details) ? body.details : {};
  if (httpStatus < 300) return { kind: 'evicted' };
  if (httpStatus === 404 && details.name === name) return { kind: 'gone' };
  const causes = Array.isArray(details.causes) ? details.causes.filter(isJsonObject) : [];
  const isTerminating = causes.some((cause) => cause.reason === 'NamespaceTerminating');
  // Also 403: "pdb disruptions allowed is negative", which the disruption controller corrects.
  const isBudget = /\bpoddisruptionbudget\b/.test(message);
  if (httpStatus === 400 || httpStatus === 404 || (httpStatus === 403 && !isTerminating && !isBudget))
    throw clusterRefused(what, { httpStatus, reason, message });
  const cause = causes.find((one) => one.reason === 'DisruptionBudget')?.message;
  const why = typeof cause === 'string' ? cause : message || `the API server answered ${httpStatus}`;
  const seconds = Number(details.retryAfterSeconds);
  return { kind: 'refused', httpStatus, why: upTo(why, '\n'), retryAfterMs: seconds > 0 ? seconds * 1000 : null };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
