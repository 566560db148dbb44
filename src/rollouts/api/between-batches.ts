import * as z from 'zod';
import { DAYS, isTimeZone } from '../../maintenance/gates/windows.ts';
import { ruled } from './rules.ts';

/** A day. */
export const MOST_SECONDS = 86_400;
const MOST_GATES = 16;
const MOST_WINDOWS = 16;
/** Results in `status.gates`: those of the last batches. */
export const MAX_GATE_RESULTS = 50;
export const MAX_ANSWER = 400;

const time = z.string().max(40).meta({ format: 'date-time' });
const clockTime = (description: string) =>
  z
    .string()
    .max(5)
    .regex(/^([01][0-9]|2[0-3]):[0-5][0-9]$/)
    .meta({ description });

const timeZone = ruled(z.string().max(64).meta({ description: 'IANA name of the time zone, e.g. Europe/Berlin or Etc/UTC.' }), {
  // An unknown name is an error of getHours, which is a refusal.
  cel: "self.matches('^[A-Za-z]') && self != 'Local' && timestamp('2030-01-01T00:00:00Z').getHours(self) >= 0",
  message: 'the name of a time zone, e.g. Europe/Berlin or Etc/UTC',
  holds: isTimeZone,
});

export const windows = z
  .array(
    z.strictObject({
      days: z
        .array(z.enum(DAYS))
        .min(1)
        .max(DAYS.length)
        .optional()
        .meta({ description: 'Days on which the window opens. Default: each day.', 'x-kubernetes-list-type': 'set' }),
      startTime: clockTime('Local time at which the window opens, e.g. "22:00".'),
      endTime: clockTime('Local time at which the window closes; on the next day if it is not later than startTime.'),
      timeZone,
    }),
  )
  .max(MOST_WINDOWS)
  .meta({
    description: 'Maintenance windows. A batch that cannot finish in a window waits for the next one. Default: at any time.',
    'x-kubernetes-list-type': 'atomic',
  });

const thresholdRange = ruled(z.strictObject({ min: z.number().optional(), max: z.number().optional() }), {
  cel: '(has(self.min) || has(self.max)) && (!has(self.min) || !has(self.max) || self.min <= self.max)',
  message: 'min, max or both are required, and min is not above max',
  holds: ({ min, max }) => (min ?? max) !== undefined && (min === undefined || max === undefined || min <= max),
}).meta({ description: 'The gate passes if the result has values, and all of them are in this range.' });

const prometheus = z
  .strictObject({
    address: z
      .string()
      .max(1024)
      .regex(/^https?:\/\/[^/?#@]+(\/[^?#]*)?$/)
      .meta({ description: 'URL of Prometheus, without credentials, e.g. http://prometheus.monitoring:9090.' }),
    query: z.string().min(1).max(4096).meta({ description: 'PromQL expression; the result is a vector or a scalar.' }),
    thresholdRange,
    retries: z.int().min(0).max(1000).default(0).meta({ description: 'Further attempts until the gate passes.' }),
    intervalSeconds: z.int().min(1).max(MOST_SECONDS).default(10).meta({ description: 'Pause between two attempts.' }),
  })
  .meta({ description: 'An instant query of Prometheus.' });

const job = z
  .strictObject({
    namespace: z
      .string()
      .min(1)
      .max(63)
      .meta({ description: 'Namespace of the Job, in which the controller must be allowed to create Jobs.' }),
    template: z
      .looseObject({ spec: z.looseObject({}).meta({ 'x-kubernetes-preserve-unknown-fields': true }) })
      .meta({ description: 'Metadata and spec of the Job, as jobTemplate of a CronJob.', 'x-kubernetes-preserve-unknown-fields': true }),
  })
  .meta({ description: 'A Job that the controller creates. The gate passes when it completes.' });

const gate = ruled(
  z.strictObject({
    name: z
      .string()
      .max(40)
      .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/)
      .meta({ description: 'Unique name, e.g. smoke-test.' }),
    after: z.enum(['Canary', 'EachBatch', 'End']).default('EachBatch').meta({
      description: 'Canary: once, after the first batch. EachBatch: after each batch, also the last one. End: after the last batch.',
    }),
    timeoutSeconds: z.int().min(1).max(MOST_SECONDS).default(300).meta({ description: 'Time limit of the gate, with all attempts.' }),
    prometheus: prometheus.optional(),
    job: job.optional(),
  }),
  {
    cel: 'has(self.prometheus) != has(self.job)',
    message: 'exactly one of prometheus and job is required',
    holds: (given) => (given.prometheus === undefined) !== (given.job === undefined),
  },
);

export const gates = z
  .array(gate)
  .max(MOST_GATES)
  .meta({
    description: 'Checks that must pass before the next batch starts.',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
  });

/** The batch that started last. */
export const batchStatus = z
  .strictObject({
    number: z.int().min(1).meta({ description: 'Number of the batch of this revision, from 1.' }),
    startedAt: time,
    endedAt: time.optional(),
    longestSeconds: z.int().min(0).optional().meta({ description: 'Duration of the longest batch that has ended.' }),
  })
  .meta({ description: 'The batch that started last; only with gates or windows.' });

export const gateResults = z
  .array(
    z.strictObject({
      name: z.string().max(40),
      batch: z
        .int()
        .min(0)
        .meta({ description: 'Number of the batch before the gate; 0: no batch, because nodes already had the revision.' }),
      state: z.enum(['Running', 'Passed', 'Failed']),
      generation: z.int().meta({ description: 'A failed gate runs again when spec has changed after this generation.' }),
      attempts: z.int().min(0),
      startedAt: time,
      endedAt: time.optional(),
      answer: z.string().max(MAX_ANSWER).optional().meta({ description: 'Result of the last attempt.' }),
    }),
  )
  .max(MAX_GATE_RESULTS)
  .meta({ description: `The last ${MAX_GATE_RESULTS} results of gates of this revision.`, 'x-kubernetes-list-type': 'atomic' });

export type Gate = z.output<typeof gate>;
export type GateResult = z.output<typeof gateResults>[number];
