import * as z from 'zod';
import { isAppError, messageOf } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { digestOf } from '../../codec/json-text.ts';
import { decideUpdate } from './decide-update.ts';
import { kubeadmConfigSpec } from './kubelet-patches.ts';
import { updateRequest } from './machine.ts';
import { type UpdatePorts, type UpdateSettings, updateMachine } from './update-machine.ts';

const API_VERSION = 'hooks.runtime.cluster.x-k8s.io/v1alpha1';

/** Less than the 10 seconds that Cluster API waits for an answer. */
const ANSWER_MS = 8_000;

/**
 * The hooks of Cluster API's Runtime SDK that this extension answers, by their path.
 * @see kubernetes-sigs/cluster-api api/runtime/catalog/catalog.go GVHToPath, api/runtime/hooks/v1alpha1/inplaceupdate_types.go
 */
const HOOKS = {
  Discovery: '',
  CanUpdateMachine: 'can-update-machine',
  CanUpdateMachineSet: 'can-update-machine-set',
  UpdateMachine: 'update-machine',
} as const;
type Hook = keyof typeof HOOKS;

/** `/hooks.runtime.cluster.x-k8s.io/v1alpha1/updatemachine/update-machine`. */
function pathOf(hook: Hook): string {
  return ['', API_VERSION, hook.toLowerCase(), HOOKS[hook]].filter((part, i) => i === 0 || part !== '').join('/');
}

/** `invalid`: not a request of this hook, as a clause. */
export type HookAnswer = { readonly response: JsonObject } | { readonly invalid: string };

/**
 * Answers the hooks of one extension.
 * @returns null for other paths
 */
export function hookAnswers(ports: UpdatePorts, settings: UpdateSettings): (path: string, body: unknown) => Promise<HookAnswer | null> {
  const running = new Map<string, Promise<JsonObject>>();
  return async (path, body) => {
    const hook = (Object.keys(HOOKS) as Hook[]).find((name) => pathOf(name) === path);
    if (hook === undefined) return null;
    const header = z.looseObject({ apiVersion: z.literal(API_VERSION), kind: z.literal(`${hook}Request`) }).safeParse(body);
    if (!header.success) return { invalid: `expected a ${hook}Request of ${API_VERSION}` };
    const respond = { apiVersion: API_VERSION, kind: `${hook}Response` };
    if (hook === 'Discovery') return { response: { ...respond, status: 'Success', handlers: HANDLERS } };
    if (hook !== 'UpdateMachine') return { response: { ...respond, ...(await canUpdate(hook, header.data, ports, settings)) } };
    // Cluster API repeats a request, also while an earlier one waits for an API server.
    const key = digestOf(header.data.desired);
    const answer = running.get(key) ?? answerUpdate(header.data, ports, settings).finally(() => running.delete(key));
    running.set(key, answer);
    return { response: { ...respond, ...(await withinTime(answer, ports)) } };
  };
}

const HANDLERS = (Object.entries(HOOKS) as [Hook, string][])
  .filter(([, name]) => name !== '')
  .map(([hook, name]) => ({ name, requestHook: { apiVersion: API_VERSION, hook }, timeoutSeconds: 10, failurePolicy: 'Fail' }));

const kubeadmConfig = <Kind extends string, Shape extends z.ZodType>(kind: Kind, spec: Shape) =>
  z.looseObject({
    apiVersion: z.enum(['bootstrap.cluster.x-k8s.io/v1beta1', 'bootstrap.cluster.x-k8s.io/v1beta2']),
    kind: z.literal(kind),
    spec,
  });
const below = <Shape extends z.ZodType>(shape: Shape) => z.looseObject({ template: z.looseObject({ spec: shape }) });
const machineSpec = z.looseObject({ version: z.string().optional() });

const machineObjects = z
  .looseObject({
    machine: z.looseObject({ spec: machineSpec }),
    bootstrapConfig: kubeadmConfig('KubeadmConfig', kubeadmConfigSpec),
  })
  .transform(({ machine, bootstrapConfig: { apiVersion, spec } }) => ({ version: machine.spec.version, api: apiVersion, spec }));
const machineSetObjects = z
  .looseObject({
    machineSet: z.looseObject({ spec: below(machineSpec) }),
    bootstrapConfigTemplate: kubeadmConfig('KubeadmConfigTemplate', below(kubeadmConfigSpec)),
  })
  .transform(({ machineSet, bootstrapConfigTemplate: { apiVersion, spec } }) => ({
    version: machineSet.spec.template.spec.version,
    api: apiVersion,
    spec: spec.template.spec,
  }));

const CAN_UPDATE = {
  CanUpdateMachine: { objects: machineObjects, at: '/spec', member: 'bootstrapConfigPatch' },
  CanUpdateMachineSet: { objects: machineSetObjects, at: '/spec/template/spec', member: 'bootstrapConfigTemplatePatch' },
} as const;

/**
 * Answers a CanUpdate request. Changes that the extension does not understand or permit are not covered: Cluster API then
 * replaces the machines. `Failure` would stop it instead.
 */
async function canUpdate(
  hook: keyof typeof CAN_UPDATE,
  request: JsonObject | Readonly<Record<string, unknown>>,
  { reporter }: Pick<UpdatePorts, 'reporter'>,
  { allow }: Pick<UpdateSettings, 'allow'>,
): Promise<JsonObject> {
  const { objects, at, member } = CAN_UPDATE[hook];
  const parsed = z.looseObject({ current: objects, desired: objects }).safeParse(request);
  const answer = (message: string, covered = {}): JsonObject => {
    reporter.report({ level: 'info', code: 'HOOK_ANSWERED', message: limited(`${hook} ${nameIn(request)}: ${message}`) });
    return { status: 'Success', message: limited(message), ...covered };
  };
  if (!parsed.success) return answer(`not covered: ${issueOf(parsed.error)}`);
  const { current, desired } = parsed.data;
  if (current.version !== desired.version || current.api !== desired.api)
    return answer('not covered: the version of the Machine or the API version of its KubeadmConfig changes');
  const decision = await decideUpdate(current.spec, desired.spec, { version: desired.version, allow, at });
  if ('refused' in decision) return answer(`not covered: ${decision.refused.join('; ')}`);
  const message = `covered: ${decision.covered.join(', ') || 'no change'}`;
  if (decision.patch.length === 0) return answer(message);
  const patch = Buffer.from(JSON.stringify(decision.patch)).toString('base64');
  return answer(message, { [member]: { patchType: 'JSONPatch', patch } });
}

/** `fleet/edge-1`, for the log. */
function nameIn(request: unknown): string {
  const metadata = z.looseObject({ metadata: z.looseObject({ namespace: z.string(), name: z.string() }) });
  const { data } = z
    .looseObject({ desired: z.looseObject({ machine: metadata.optional(), machineSet: metadata.optional() }) })
    .safeParse(request);
  const { namespace, name } = (data?.desired.machine ?? data?.desired.machineSet)?.metadata ?? { namespace: '', name: '' };
  return `${namespace}/${name}`;
}

/** `desired.bootstrapConfig.kind: Invalid input: expected "KubeadmConfig"`. */
function issueOf({ issues: [issue] }: z.ZodError): string {
  return `${issue?.path.join('.')}: ${issue?.message}`;
}

async function answerUpdate(request: unknown, ports: UpdatePorts, settings: UpdateSettings): Promise<JsonObject> {
  const parsed = updateRequest.safeParse(request);
  if (!parsed.success) return failure(`the request is not supported: ${issueOf(parsed.error)}`);
  const answer = await updateMachine(ports, parsed.data.desired, settings).then(
    ({ message, retryAfterSeconds }) => ({ status: 'Success', message: limited(message), retryAfterSeconds }),
    (error: unknown) => {
      if (!isAppError(error)) throw error;
      return failure(messageOf(error));
    },
  );
  ports.reporter.report({
    level: 'info',
    code: 'HOOK_ANSWERED',
    message: limited(`UpdateMachine ${nameIn(request)}: ${answer.status}: ${answer.message}`),
  });
  return answer;
}

function failure(message: string) {
  return { status: 'Failure', message: limited(message), retryAfterSeconds: 0 };
}

async function withinTime(answer: Promise<JsonObject>, { clock }: Pick<UpdatePorts, 'clock'>): Promise<JsonObject> {
  const stop = new AbortController();
  const late = clock
    .sleep(ANSWER_MS, stop.signal)
    .then(() => failure(`the API servers did not answer within ${ANSWER_MS / 1000} s; repeat the request`));
  // Rejects when the answer was first.
  late.catch(() => undefined);
  try {
    return await Promise.race([answer, late]);
  } finally {
    stop.abort();
  }
}

/** Messages become conditions of objects, and lines of the log with names that any client can send. */
function limited(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}...` : message;
}

const MAX_MESSAGE = 1_000;
