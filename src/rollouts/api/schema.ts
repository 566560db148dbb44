import * as z from 'zod';
import { DEFAULT_ALLOWED, IMPACTS } from '../../host/plan/impact.ts';
import type { KubeObject } from '../../kube/object.ts';
import { DEFAULT_CONFIG_KEY } from '../../kubelet/layers/config-source.ts';
import { batchStatus, gateResults, gates, MOST_SECONDS, windows } from './between-batches.ts';
import { type Rule, ruled, ruleFunctions, validations } from './rules.ts';

export const ROLLOUT_API_VERSION = 'kubeletadm.dev/v1alpha1';
export const ROLLOUT_KIND = 'KubeletConfigRollout';

/** The function of a CEL expression of this API; undefined: unknown. */
export function ruleFunction(cel: string): ((value: unknown) => boolean) | undefined {
  return ruleFunctions.get(cel) as ((value: unknown) => boolean) | undefined;
}

/** Nodes whose change may be in progress at the same time: each is recorded in the status before it is changed. */
export const MAX_IN_PROGRESS = 100;
/** Nodes in `status.nodes`. All failed nodes and all nodes in progress are among them. */
export const MAX_LISTED = 250;
/** Further nodes may fail while the rollout stops: those in progress. */
const MAX_FAILURES = 100;

/** The name is part of the names of ConfigMaps, and the value of a label. */
const LONGEST_ROLLOUT_NAME = 52;

/** The rule of the whole object. */
export const NAME_RULE: Rule<Pick<KubeObject, 'metadata'>> = {
  cel: `size(self.metadata.name) <= ${LONGEST_ROLLOUT_NAME}`,
  message: `metadata.name has at most ${LONGEST_ROLLOUT_NAME} characters`,
  holds: ({ metadata }) => metadata.name.length <= LONGEST_ROLLOUT_NAME,
};

export const NAME_VALIDATIONS = validations(NAME_RULE);

const MAX_REQUIREMENTS = 32;
const LONGEST_NAME = 253;
const LONGEST_LABEL_VALUE = 63;

const labelKey = z.string().min(1).max(316);
const labelValue = z.string().max(LONGEST_LABEL_VALUE);

const requirement = ruled(
  z.strictObject({
    key: labelKey.meta({ description: 'Label key.' }),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
    values: z.array(labelValue).max(MAX_REQUIREMENTS).optional().meta({ description: 'Label values of In and NotIn.' }),
  }),
  {
    cel: "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
    message: 'values are required for In and NotIn, and not allowed for Exists and DoesNotExist',
    holds: ({ operator, values = [] }) => (operator === 'In' || operator === 'NotIn') === values.length > 0,
  },
);

const labelSelector = (description: string) =>
  z
    .strictObject({
      matchLabels: z.record(labelKey, labelValue).optional().meta({ maxProperties: MAX_REQUIREMENTS }),
      matchExpressions: z.array(requirement).max(MAX_REQUIREMENTS).optional().meta({ 'x-kubernetes-list-type': 'atomic' }),
    })
    .meta({ description, 'x-kubernetes-map-type': 'atomic' });

/** A number or a percentage, as maxUnavailable of a Deployment. */
const amount = (description: string, { least }: { readonly least: 0 | 1 }) =>
  ruled(z.union([z.int().min(0).max(100_000), z.string().max(5)]).meta({ description, 'x-kubernetes-int-or-string': true }), {
    cel: `type(self) == int ? self >= ${least} && self <= 100000 : self.matches('^(${least === 0 ? '0|' : ''}[1-9][0-9]?|100)%$')`,
    message: `a number of at least ${least}, or a percentage from ${least}% to 100%`,
    holds: (value) =>
      typeof value === 'number' ? value >= least : (least === 0 ? /^(0|[1-9][0-9]?|100)%$/ : /^([1-9][0-9]?|100)%$/).test(value),
  });

const configMapRef = z
  .strictObject({
    namespace: z
      .string()
      .min(1)
      .max(LONGEST_LABEL_VALUE)
      .meta({ description: 'Namespace whose ConfigMaps the agents of the nodes may read.' }),
    name: z.string().min(1).max(LONGEST_NAME),
    kubeletConfigKey: z.string().min(1).max(LONGEST_NAME).default(DEFAULT_CONFIG_KEY).meta({ description: 'Key of the configuration.' }),
  })
  .meta({ description: 'An immutable ConfigMap with a KubeletConfiguration or an overlay, as dynamic push creates it.' });

const overlay = ruled(
  z.looseObject({ apiVersion: z.string().max(100).optional(), kind: z.string().max(100).optional() }).meta({
    description: 'Fields of a KubeletConfiguration, merged over the local configuration of each node. Requires agents.',
    'x-kubernetes-preserve-unknown-fields': true,
  }),
  {
    cel: '!has(self.apiVersion) && !has(self.kind)',
    message: 'an overlay has fields of a KubeletConfiguration only, without apiVersion and kind',
    holds: ({ apiVersion, kind }) => apiVersion === undefined && kind === undefined,
  },
);

const payload = ruled(
  z
    .strictObject({ configMapRef: configMapRef.optional(), overlay: overlay.optional() })
    .meta({ description: 'The configuration of the nodes: exactly one of configMapRef and overlay.' }),
  {
    cel: 'has(self.configMapRef) != has(self.overlay)',
    message: 'exactly one of configMapRef and overlay is required',
    holds: (given) => (given.configMapRef === undefined) !== (given.overlay === undefined),
  },
);

const canary = z
  .strictObject({
    count: amount('Nodes that are changed first. The others follow when these are updated; if one fails, no other is changed.', {
      least: 0,
    }).default(1),
    nodeSelector: labelSelector('Nodes that are preferred as canaries.').optional(),
  })
  .meta({ description: 'Nodes that are changed first.' });

const drain = z
  .strictObject({
    force: z.boolean().default(false).meta({
      description: 'Also evict pods without a controller and pods with emptyDir volumes: these pods or their data are lost.',
    }),
    timeoutSeconds: z.int().min(1).max(MOST_SECONDS).default(600).meta({ description: 'Time limit for draining a node.' }),
    settleSeconds: z.int().min(0).max(MOST_SECONDS).default(120).meta({
      description: 'Time limit for the controllers of evicted pods to have as many Ready pods as before; then the next node is changed.',
    }),
  })
  .meta({ description: 'How nodes are drained for changes of class drain and unsafe.' });

const strategy = ruled(
  z.strictObject({
    canary: canary.prefault({}),
    order: z.array(labelSelector('Nodes of this step.')).max(16).optional().meta({
      description: 'Nodes of the first selector are changed first, and so on; nodes of no selector last.',
      'x-kubernetes-list-type': 'atomic',
    }),
    topologyKey: labelKey.optional().meta({ description: 'Label of the zone, such as topology.kubernetes.io/zone.' }),
    topologyOrder: z.enum(['Sequential', 'Spread']).optional().meta({
      description:
        'Sequential (default): all nodes of one zone are changed before those of the next zone. Spread: nodes in progress are spread over the zones.',
    }),
    maxUnavailable: amount(
      `Nodes that are in progress or not Ready at the same time, as a number or a percentage of the selected nodes (rounded down, at least 1). At most ${MAX_IN_PROGRESS} nodes are in progress.`,
      { least: 1 },
    ).default(1),
    maxFailures: z
      .int()
      .min(0)
      .max(MAX_FAILURES)
      .default(0)
      .meta({ description: 'Number of failed nodes up to which further nodes are changed.' }),
    minReadySeconds: z
      .int()
      .min(0)
      .max(MOST_SECONDS)
      .default(30)
      .meta({ description: 'Time that a node must be Ready with its new configuration before it is updated.' }),
    until: z
      .enum(['Trial', 'Good'])
      .default('Trial')
      .meta({ description: 'Trial: the kubelet runs the configuration, and its trial has begun. Good: the trial has passed.' }),
    allow: z
      .enum(IMPACTS)
      .default(DEFAULT_ALLOWED)
      .meta({ description: 'Most disruptive class of change. A configuration above it is refused; drain and unsafe drain each node.' }),
    drain: drain.prefault({}),
    gates: gates.optional(),
    windows: windows.optional(),
    batchDurationSeconds: z.int().min(1).max(MOST_SECONDS).optional().meta({
      description: 'Expected duration of a batch, for windows. Default: 600 for the first batch, then the duration of the longest batch.',
    }),
  }),
  {
    cel: '!has(self.topologyOrder) || has(self.topologyKey)',
    message: 'topologyOrder requires topologyKey',
    holds: ({ topologyOrder, topologyKey }) => topologyOrder === undefined || topologyKey !== undefined,
  },
).meta({ description: 'How the configuration reaches the nodes.' });

const specSchema = z
  .strictObject({
    nodeSelector: labelSelector('The nodes of the rollout, also those that join later; {} selects all nodes.'),
    payload,
    strategy: strategy.prefault({}),
    paused: z.boolean().default(false).meta({
      description: 'No further node is changed. Nodes in progress finish; new nodes get the current revision.',
    }),
    progressDeadlineSeconds: z.int().min(1).max(MOST_SECONDS).default(900).meta({ description: 'Time limit of each node.' }),
    onFailure: z
      .enum(['Stop', 'Revert'])
      .default('Stop')
      .meta({ description: 'Stop: changed nodes keep the revision. Revert: they get their previous configuration.' }),
    revisionHistoryLimit: z.int().min(0).max(100).default(10).meta({ description: 'Old revisions that are kept.' }),
    deletionPolicy: z.enum(['Leave', 'Reset']).default('Leave').meta({
      description: 'When the object is deleted. Leave: nodes keep their configuration. Reset: nodes return to their local configuration.',
    }),
  })
  .meta({ description: 'The desired configuration of the selected nodes.' });

const time = z.string().max(40).meta({ format: 'date-time' });
const message = z.string().max(4096);
const count = (description: string) => z.int().min(0).meta({ description });
const revision = z.string().max(LONGEST_NAME);

/**
 * `Pending`: not started · `InProgress`: recorded, then assigned, not updated yet · `Updated` · `Failed` · `Unreachable`: not Ready
 * before its start and after its time limit · `NotEnabled`: no agent, or dynamic configuration is not enabled.
 */
const nodeState = z.enum(['Pending', 'InProgress', 'Updated', 'Failed', 'Unreachable', 'NotEnabled']);

const statusSchema = z
  .object({
    observedGeneration: z.int().optional(),
    phase: z
      .enum(['Progressing', 'Paused', 'Complete', 'Failed', 'Reverting', 'Reverted', 'Refused', 'Deleting'])
      .optional()
      .meta({ description: 'Summary of the conditions, for display.' }),
    conditions: z
      .array(
        z.object({
          type: z.string().min(1).max(316),
          status: z.enum(['True', 'False', 'Unknown']),
          observedGeneration: z.int().optional(),
          lastTransitionTime: time,
          reason: z.string().max(1024),
          message: z.string().max(32_768),
        }),
      )
      .optional()
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }),
    counts: z
      .strictObject({
        selected: count('Selected nodes.'),
        updated: count('Nodes that run the desired configuration.'),
        inProgress: count('Nodes whose change is in progress.'),
        pending: count('Nodes that are not started.'),
        failed: count('Nodes that failed.'),
        unavailable: count('Nodes that are in progress or not Ready.'),
        notEnabled: count('Nodes without an agent, or without dynamic configuration.'),
      })
      .optional(),
    nodes: z
      .array(
        z.object({
          name: z.string().max(LONGEST_NAME),
          state: nodeState,
          source: z.string().max(1000).optional().meta({
            description: 'The new configuration as NAMESPACE/NAME/KEY of its ConfigMap, or local. Absent: the node is not changed.',
          }),
          since: time.optional().meta({ description: 'Start of the change, or time of its failure.' }),
          updatedSince: time.optional().meta({ description: 'Ready with the desired configuration since.' }),
          wasDown: z.boolean().optional().meta({ description: 'Not Ready before the change.' }),
          message: message.optional(),
        }),
      )
      .max(MAX_LISTED)
      .optional()
      .meta({
        description: `At most ${MAX_LISTED} nodes: failed ones first, then those in progress, then those that wait. Updated nodes are not listed.`,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
    omittedNodes: z.int().optional().meta({ description: 'Nodes that are neither updated nor listed.' }),
    currentRevision: revision.optional().meta({ description: 'Last revision that all nodes had.' }),
    currentConfigMap: configMapRef.optional().meta({ description: 'ConfigMap of the current revision.' }),
    updateRevision: revision.optional().meta({ description: 'Revision of spec.payload.' }),
    updateConfigMap: configMapRef.optional().meta({ description: 'ConfigMap of the update revision.' }),
    failedRevision: revision.optional().meta({
      description: 'Revision that is being reverted or was reverted. It is not rolled out again until this field is removed.',
    }),
    batch: batchStatus.optional(),
    gates: gateResults.optional(),
    leader: z.string().max(LONGEST_NAME).optional().meta({
      description: 'The controller that acts on the object. Another one writes its identity first, so that late writes are rejected.',
    }),
  })
  .meta({ description: 'The state of the rollout, written by the controller.' });

export const rolloutSchema = { spec: specSchema, status: statusSchema };

export type RolloutSpec = z.output<typeof specSchema>;
export type RolloutStatus = z.output<typeof statusSchema>;
/** A node in `status.nodes`. */
export type ListedNode = NonNullable<RolloutStatus['nodes']>[number];
export type RolloutCondition = NonNullable<RolloutStatus['conditions']>[number];
