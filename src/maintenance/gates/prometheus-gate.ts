import * as z from 'zod';
import { AppError } from '../../base/errors.ts';
import { Secret } from '../../base/text/secret.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { HttpsResponse, WebFailureCause } from '../../kube/https-client.ts';
import type { GateAnswer } from './batch-gates.ts';
import type { Attempt, GatePorts } from './gate-ports.ts';
import type { PreparedGate } from './rollout-settings.ts';

const sample = z.tuple([z.number(), z.string()]);
const response = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('success'),
    data: z.discriminatedUnion('resultType', [
      z.object({ resultType: z.literal('vector'), result: z.array(z.object({ value: sample })) }),
      z.object({ resultType: z.literal('scalar'), result: sample }),
      z.object({ resultType: z.enum(['matrix', 'string']) }),
    ]),
  }),
  z.object({ status: z.literal('error'), error: z.string() }),
]);

const MOST_SHOWN = 5;

interface PrometheusQuery {
  readonly address: string;
  readonly query: string;
  readonly thresholdRange: { readonly min?: number | undefined; readonly max?: number | undefined };
}

/**
 * Runs the query of a gate with the CA and the token of its files.
 * @throws AppError those of `queryPrometheus`; INPUT_*: a file cannot be read
 */
export async function prometheusGate(
  { web, input, signal }: Pick<GatePorts, 'web' | 'input' | 'signal'>,
  { caFile, bearerTokenFile, ...query }: NonNullable<PreparedGate['prometheus']>,
  { timeoutMs }: Pick<Attempt, 'timeoutMs'>,
): Promise<GateAnswer> {
  const [ca, token] = await Promise.all([caFile, bearerTokenFile].map((file) => (file === undefined ? undefined : input.readText(file))));
  return queryPrometheus({ web, signal }, query, { timeoutMs, ca, token });
}

/**
 * Runs an instant query. It passes if all values are in the range: as in Flagger, but a result without a value fails.
 * @throws AppError GATE_FAILED: no answer, or not that of Prometheus
 * @see https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries
 */
export async function queryPrometheus(
  { web, signal }: Pick<GatePorts, 'web' | 'signal'>,
  { address, query, thresholdRange: { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } }: PrometheusQuery,
  { timeoutMs, ca, token }: { readonly timeoutMs: number; readonly ca?: string | undefined; readonly token?: string | undefined },
): Promise<GateAnswer> {
  const isPlain = address.startsWith('http:');
  const answer = await web.get({
    url: `${trimTrailing(address, '/')}/api/v1/query?${new URLSearchParams({ query })}`,
    trust: isPlain ? { kind: 'plain' } : ca === undefined ? { kind: 'machine' } : { kind: 'ca', pem: ca },
    ...(token === undefined ? {} : { bearerToken: new Secret(token.trim()) }),
    ...(isPlain ? { proxyUrl: null } : {}),
    timeoutMs,
    signal,
  });
  if (answer.kind === 'failed') throw failed(`${address} did not answer: ${CAUSES[answer.issue.kind] ?? answer.issue.kind}`);
  const values = valuesOf(answer);
  if (values.length === 0) return { isPassed: false, answer: 'the result has no value' };
  // A comparison with NaN is false.
  const isPassed = values.every((value) => Number(value) >= min && Number(value) <= max);
  const shown = values.slice(0, MOST_SHOWN).join(', ');
  return {
    isPassed,
    answer: `${values.length === 1 ? 'value' : 'values'} ${shown}${values.length > MOST_SHOWN ? ` and ${values.length - MOST_SHOWN} more` : ''}`,
  };
}

const CAUSES: Readonly<Partial<Record<WebFailureCause['kind'], string>>> = {
  dns: 'DNS cannot resolve the name',
  refused: 'connection refused',
  'no-route': 'no route to host',
  'timed-out': 'timed out',
  'unknown-authority': 'its certificate is issued by an unknown CA',
};

function valuesOf({ status, text }: HttpsResponse): readonly string[] {
  const read = response.safeParse(jsonOf(text));
  if (!read.success) throw failed(`the server answered with HTTP status ${status}, which is not an answer of Prometheus`);
  if (read.data.status === 'error') throw failed(`Prometheus: ${read.data.error}`);
  const { data } = read.data;
  if (data.resultType === 'vector') return data.result.map(({ value }) => value[1]);
  if (data.resultType === 'scalar') return [data.result[1]];
  throw failed(`the result is a ${data.resultType}, not a vector or a scalar`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function failed(message: string): AppError {
  return new AppError({ code: 'GATE_FAILED', message });
}
