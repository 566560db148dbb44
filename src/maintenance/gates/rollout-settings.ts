import * as z from 'zod';
import { goDurationMs, isTimeLimit } from '../../base/text/go-duration.ts';
import type { IssueParams } from '../../codec/read-document.ts';
import { duration, optional, text } from '../../kubeadm/config/schema-parts.ts';
import { DAYS, isTimeZone } from './windows.ts';

/** `kind` of a file with only these settings. */
export const ROLLOUT_KIND = 'Rollout';

const INVALID = { params: { code: 'CONFIG_INVALID_VALUE' } satisfies IssueParams };
const OUT_OF_RANGE = { params: { code: 'CONFIG_OUT_OF_RANGE' } satisfies IssueParams };

const timeLimit = duration.refine(isTimeLimit, { message: 'must be a duration from 1s to 24h', ...OUT_OF_RANGE });

const COMMAND_ISSUE = {
  code: 'CONFIG_INVALID_VALUE',
  hint: 'Write a list with the program and its arguments, or a string for sh -c',
} satisfies IssueParams;

/** A list of the program and its arguments; a string becomes the arguments of `sh -c`. */
const command = z
  .unknown()
  .transform((written, context): readonly string[] => {
    const words = typeof written === 'string' && written.trim() !== '' ? ['sh', '-c', written] : written;
    if (Array.isArray(words) && words.length > 0 && words.every(isWord) && words[0] !== '' && !(words[0] as string).includes('='))
      return words;
    context.issues.push({ code: 'custom', input: written, message: 'the value is not a command', params: COMMAND_ISSUE });
    return z.NEVER;
  })
  .meta({ jsonSchema: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, minItems: 1 }] } });

function isWord(word: unknown): word is string {
  return typeof word === 'string' && !word.includes('\0');
}

const prometheus = z.strictObject({
  address: text
    .refine((url) => /^https?:\/\/[^/?#@]+(?:\/[^?#]*)?$/.test(url) && URL.canParse(url), {
      message: 'must be a URL such as https://prometheus.example.com, without credentials, query and fragment',
      ...INVALID,
    })
    .describe('URL of Prometheus or of a server with the same API'),
  query: text.min(1).describe('PromQL expression; an instant query whose result is a vector or a scalar'),
  thresholdRange: z
    .strictObject({ min: optional(z.number()), max: optional(z.number()) })
    .describe('The gate passes if each value of the result is in this range, and the result has a value'),
  bearerTokenFile: optional(text.describe('Path of a file with the bearer token; only with https')),
  caFile: optional(text.describe('Path of the CA certificates of the server (default: those of the local host)')),
});

const gateFields = {
  name: text
    .refine((name) => /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/.test(name), {
      message: 'must have at most 40 lower-case letters, digits and hyphens',
      ...INVALID,
    })
    .describe('Unique name, e.g. smoke-test'),
  after: optional(
    z
      .enum(['canary', 'each-batch', 'end'])
      .describe(
        'canary: once, after the first batch. each-batch: after each batch, also the last one. end: after the last batch (default: each-batch)',
      ),
  ),
  timeout: optional(timeLimit.describe('Time limit of the gate, with all attempts (default: 5m)')),
  retries: optional(
    z
      .int32()
      .refine((count) => count >= 0 && count <= 1000, { message: 'must be from 0 to 1000', ...OUT_OF_RANGE })
      .describe('Number of further attempts until the gate passes (default: 0)'),
  ),
  interval: optional(timeLimit.describe('Pause between two attempts (default: 10s)')),
  onFailure: optional(
    z
      .enum(['stop', 'revert'])
      .describe(
        'stop: change no other host. revert: also undo the changes of this run; only for dynamic assign and reset (default: that of --on-failure, otherwise stop)',
      ),
  ),
  command: optional(
    command.describe(
      'Command run on the local host; passes with exit code 0. A list of the program and its arguments, or a string for sh -c',
    ),
  ),
  prometheus: optional(prometheus.describe('Query of Prometheus')),
};

const jobGate = z.strictObject({
  ...gateFields,
  job: optional(
    z
      .strictObject({
        manifest: text.describe('Path of the manifest of a Job; passes if the Job completes'),
        namespace: optional(text.describe('Namespace of the Job (default: that of the manifest, otherwise default)')),
      })
      .describe('Kubernetes Job, created under a generated name'),
  ),
});

const time = text.refine((written) => /^(?:[01]\d|2[0-3]):[0-5]\d$/.test(written), {
  message: 'must be a time from "00:00" to "23:59"',
  ...INVALID,
});

const window = z.strictObject({
  days: optional(z.array(z.enum(DAYS)).min(1).describe('Days on which the window opens (default: each day)')),
  startTime: time.describe('Local time at which the window opens, e.g. "22:00"'),
  endTime: optional(time.describe('Local time at which the window closes; on the next day if it is not later than startTime')),
  duration: optional(timeLimit.describe('Duration of the window, in place of endTime')),
  timeZone: text
    .refine(isTimeZone, {
      message: 'must be the name of a time zone, e.g. Europe/Berlin or Etc/UTC',
      ...INVALID,
    })
    .describe('IANA name of the time zone, e.g. Europe/Berlin'),
});

const windowFields = {
  windows: optional(
    z.array(window).describe('Maintenance windows: a batch that cannot finish in a window does not start (default: at any time)'),
  ),
  batchDuration: optional(
    timeLimit.describe('Expected duration of a batch, for windows (default: 10m for the first batch, then the longest batch of the run)'),
  ),
};

/** What happens between the batches of a rollout. */
export const rolloutSettings = z.strictObject({
  gates: optional(z.array(jobGate).describe('Checks between batches; the next batch starts when they have passed')),
  ...windowFields,
});

/** The settings with the content of their files and absolute paths: part of saved plans. */
export const preparedRollout = z.strictObject({
  gates: z.array(
    z.strictObject({
      ...gateFields,
      directory: text,
      job: optional(z.strictObject({ manifest: z.record(text, z.json()), namespace: text })),
    }),
  ),
  ...windowFields,
});

export type RolloutSettings = z.output<typeof rolloutSettings>;
export type PreparedRollout = z.output<typeof preparedRollout>;
export type PreparedGate = PreparedRollout['gates'][number];
export const GATE_KINDS = ['command', 'job', 'prometheus'] as const;
export type GateKind = (typeof GATE_KINDS)[number];

export function kindOf(gate: Pick<PreparedGate, Exclude<GateKind, 'job'>> & { readonly job?: unknown }): GateKind {
  return GATE_KINDS.find((kind) => gate[kind] !== undefined) ?? 'command';
}

/** `smoke-test (command) after each batch`. */
export function describeGate(gate: PreparedGate): string {
  const when = { canary: 'after the first batch', 'each-batch': 'after each batch', end: 'after the last batch' } as const;
  const { after = 'each-batch', onFailure } = gate;
  return `${gate.name} (${kindOf(gate)}) ${when[after]}${onFailure === 'revert' ? ', else revert' : ''}`;
}

/** Defaults in milliseconds. */
export function limitsOf({ timeout = '5m', interval = '10s', retries = 0 }: PreparedGate) {
  return { timeoutMs: goDurationMs(timeout), intervalMs: goDurationMs(interval), retries };
}
