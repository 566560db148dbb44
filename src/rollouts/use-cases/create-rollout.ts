import type { RunTime } from '../../base/clock.ts';
import { AppError, usageError } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { ReportEvent, Reporter } from '../../base/reporter.ts';
import { sourceToJson } from '../../codec/source.ts';
import { OVERLAY_API_VERSION, OVERLAY_KIND } from '../../dynamic/agent/overlay.ts';
import { type NodeConfig, readNodeConfig } from '../../dynamic/status/node-config.ts';
import { reportImpact } from '../../dynamic/use-cases/assign.ts';
import { performPush, requireGoodPayload } from '../../dynamic/use-cases/push-file.ts';
import type { PushPlan } from '../../dynamic/workflows/push-config.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { LabelSelector } from '../../kube/label-selector.ts';
import { matchesLabels } from '../../kube/match-labels.ts';
import type { KubeObject } from '../../kube/object.ts';
import { readOverlay } from '../../kubeadm/use-cases/node-options.ts';
import { type KubeconfigRequest, type OpenClusterPorts, openCluster } from '../../kubeadm/use-cases/open-cluster.ts';
import { DEFAULT_MINOR } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND, withoutHeader, withoutPosition } from '../../kubelet/documents/decode.ts';
import type { ConfigSource } from '../../kubelet/layers/config-source.ts';
import { parseSetting } from '../../kubelet/layers/setting.ts';
import type { Rollout } from '../api/rollout.ts';
import { ROLLOUT_API_VERSION, ROLLOUT_KIND } from '../api/schema.ts';
import { checkPayload } from '../controller/check-nodes.ts';
import { payloadContent, revisionOf } from '../controller/revision.ts';
import { selectNodes } from '../controller/select.ts';
import { controllerNotRunning, isControllerAlive, listRollouts, validRollout } from './find-rollouts.ts';

export interface CreateRolloutRequest {
  readonly name: string;
  /** A ConfigMap; or fields of a KubeletConfiguration, from `--overlay FILE` and `--set FIELD=VALUE`. */
  readonly payload: ConfigSource | { readonly overlay: string | undefined; readonly settings: readonly string[] };
  /** Creates the ConfigMap, after all checks. Absent: it exists. */
  readonly push?: PushPlan | undefined;
  /** Refuse to create an object that no controller acts on. Absent: a warning. */
  readonly requiresController?: boolean;
  /** `spec` without the payload. */
  readonly spec: JsonObject;
  /** Canaries by label; undefined: by number. */
  readonly canaries?: LabelSelector | undefined;
  /** Namespace of the controller. */
  readonly namespace: string;
  readonly cluster: KubeconfigRequest;
  readonly run: RunSettings;
}

type Ports = OpenClusterPorts & Pick<LocalFiles, 'input'> & Pick<RunTime, 'clock'>;

/**
 * Creates a rollout after the checks of its controller: schema, other rollouts of the same nodes, and the payload for each selected
 * node. Reports the changed fields with their impact. A dry run without an API server checks the schema only.
 * @param apply receives the object, and how to create it. @returns the object as created, or as it would be created
 * @throws AppError ROLLOUT_INVALID and errors in the payload (exit code 2), ROLLOUT_EXISTS and ROLLOUT_REFUSED (exit code 3)
 */
export async function createRollout(
  services: Ports,
  request: CreateRolloutRequest,
  reporter: Reporter,
  apply: (object: KubeObject, create: () => Promise<KubeObject>) => Promise<KubeObject>,
): Promise<KubeObject> {
  const { run, namespace, canaries, push, requiresController = false } = request;
  const given = await objectOf(services, request);
  validRollout(given);
  const { cluster, warnings } = await openCluster(services, request.cluster, { ...run, writes: reporter });
  for (const warning of warnings) reporter.report({ level: 'warning', ...warning });
  if (cluster === null) return given;
  try {
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' });
    const object = canaries === undefined ? given : withCanaries(given, canaries, items);
    const found = (await listRollouts(cluster)).map(({ rollout }) => rollout);
    const others = found.filter(({ name }) => name !== request.name);
    const isAlive = await isControllerAlive(cluster, { namespace, now: services.clock.now() });
    if (isAlive === false && requiresController) throw new AppError(controllerNotRunning(namespace), { exitCode: 3 });
    await requireAccepted(cluster, validRollout(object), { nodes: items, others, namespace, push, reporter });
    const created = await apply(object, async () => {
      if (others.length < found.length) throw rolloutExists(request.name);
      if (push !== undefined) await performPush(cluster, push, reporter);
      return cluster.create(object);
    });
    if (isAlive === false) reporter.report({ level: 'warning', ...controllerNotRunning(namespace) });
    return created;
  } finally {
    await cluster.close();
  }
}

async function objectOf(services: Ports, { name, payload, spec }: CreateRolloutRequest): Promise<KubeObject> {
  const content = 'name' in payload ? { configMapRef: { ...payload } } : { overlay: await readFields(services, payload) };
  const { nodeSelector = {}, ...more } = spec;
  return { apiVersion: ROLLOUT_API_VERSION, kind: ROLLOUT_KIND, metadata: { name }, spec: { nodeSelector, payload: content, ...more } };
}

/** The fields of `--overlay`, and those of `--set`, which override them. */
async function readFields(
  { input }: Ports,
  { overlay, settings }: { readonly overlay: string | undefined; readonly settings: readonly string[] },
): Promise<JsonObject> {
  const [document] = overlay === undefined ? [] : await readOverlay({ input }, overlay);
  const content = document?.root == null ? {} : sourceToJson(document.root);
  if (!isJsonObject(content)) throw wrongKind(overlay ?? '');
  const header = `${content.apiVersion ?? ''} ${content.kind ?? ''}`.trim();
  const isOverlay = ['', `${OVERLAY_API_VERSION} ${OVERLAY_KIND}`, `${KUBELET_API_VERSION} ${KUBELET_KIND}`].includes(header);
  if (!isOverlay) throw wrongKind(overlay ?? '');
  const catalogue = await loadCatalogue();
  const parsed = settings.map((text) => parseSetting(text, DEFAULT_MINOR, catalogue));
  return parsed.reduce<JsonObject>((fields, { path, value }) => withField(fields, path, value), withoutHeader(content));
}

function wrongKind(file: string): AppError {
  const hint = `Write fields of a KubeletConfiguration, with kind: ${OVERLAY_KIND} and apiVersion: ${OVERLAY_API_VERSION}, or without both`;
  return new AppError({ code: 'CONFIG_WRONG_KIND', message: `${file}: the document is not an overlay`, hint }, { exitCode: 2 });
}

function withField(fields: JsonObject, [name = '', ...rest]: readonly string[], value: Json): JsonObject {
  if (rest.length === 0) return { ...fields, [name]: value };
  const inner = fields[name];
  return { ...fields, [name]: withField(isJsonObject(inner) ? inner : {}, rest, value) };
}

/** Canaries by label: as many as the selected nodes with this label. @throws AppError USAGE (exit code 2) if there are none */
function withCanaries(object: KubeObject, canaries: LabelSelector, nodes: readonly KubeObject[]): KubeObject {
  const { nodeSelector } = validRollout(object).spec;
  const labelled = nodes.filter(
    ({ metadata }) => matchesLabels(nodeSelector, metadata.labels ?? {}) && canaries.matches(metadata.labels ?? {}),
  );
  if (labelled.length === 0)
    throw usageError(
      `--canary ${canaries.text}: no selected node has this label`,
      'List the labels of the nodes: kubectl get nodes --show-labels',
    );
  const spec = object.spec as JsonObject;
  const canary = { count: labelled.length, nodeSelector: nodeSelectorOf(canaries, '--canary') };
  return { ...object, spec: { ...spec, strategy: { ...(isJsonObject(spec.strategy) ? spec.strategy : {}), canary } } };
}

/**
 * A label selector of a command line as that of an object.
 * @throws AppError USAGE (exit code 2) for the operators < and >, which objects do not have
 */
export function nodeSelectorOf({ requirements, text }: LabelSelector, flag: string): JsonObject {
  const numeric = requirements.find(({ operator }) => operator === 'Gt' || operator === 'Lt');
  if (numeric !== undefined) throw usageError(`${flag} ${text}: a rollout cannot compare numbers`, 'Use =, !=, in, notin, KEY or !KEY');
  const matchLabels: Record<string, string> = {};
  const matchExpressions: JsonObject[] = [];
  for (const { key, operator, values } of requirements) {
    const [value = ''] = values;
    if (operator === 'In' && values.length === 1 && !Object.hasOwn(matchLabels, key)) matchLabels[key] = value;
    else matchExpressions.push({ key, operator, ...(values.length === 0 ? {} : { values: [...values] }) });
  }
  return {
    ...(Object.keys(matchLabels).length === 0 ? {} : { matchLabels }),
    ...(matchExpressions.length === 0 ? {} : { matchExpressions }),
  };
}

/** The checks of the controller before it changes a node. @throws AppError ROLLOUT_REFUSED (exit code 3), errors in the payload */
async function requireAccepted(
  cluster: Cluster,
  rollout: Rollout,
  {
    nodes: all,
    others,
    namespace,
    push,
    reporter,
  }: {
    readonly push: PushPlan | undefined;
    readonly nodes: readonly KubeObject[];
    readonly others: readonly Rollout[];
    readonly namespace: string;
    readonly reporter: Reporter;
  },
): Promise<void> {
  // A new object is younger than all others.
  const selection = selectNodes([...others, { ...rollout, createdAt: '9' }], all).find(({ rollout: { name } }) => name === rollout.name);
  const { names = [], refusal = null } = selection ?? {};
  if (refusal !== null) throw refused([{ message: refusal.message }]);
  const nodes = all.filter(({ metadata }) => names.includes(metadata.name)).map((node) => readNodeConfig(node));
  const message =
    nodes.length === 0
      ? 'the selector matches no existing node, so only nodes that join later are changed. Labels: kubectl get nodes --show-labels'
      : `${nodes.length} ${nodes.length === 1 ? 'node is' : 'nodes are'} selected`;
  reporter.report({ level: nodes.length === 0 ? 'warning' : 'info', code: 'ROLLOUT_NODES', message });
  const { source } = revisionOf(rollout, namespace);
  const pushed = push && { text: push.data[push.source.kubeletConfigKey] ?? '', data: push.data };
  const content = pushed ?? (await payloadContent(cluster, rollout.spec, source));
  if ('refusal' in content) throw refused([{ message: content.refusal.message }]);
  await validateContent(content.text, nodes, reporter);
  const { checks, fields } = await checkPayload(cluster, rollout.spec, { source, ...content }, nodes);
  reportImpact(fields, reporter);
  const found = [...checks].flatMap(([host, { refusal: why }]) => (why === null ? [] : [{ host, message: why }]));
  if (found.length > 0) throw refused(found);
}

/** Problems without their lines, which are those of the stored document. @throws AppError with each error (exit code 2) */
async function validateContent(text: string, nodes: readonly NodeConfig[], reporter: Reporter): Promise<void> {
  const place = new RegExp(`^${ROLLOUT_KIND}:\\d+:\\d+ `);
  const withoutLines = { report: (event: ReportEvent) => reporter.report({ ...event, message: event.message.replace(place, '') }) };
  try {
    await requireGoodPayload(text, ROLLOUT_KIND, nodes, { kubernetesVersion: undefined, skipValidation: false }, withoutLines);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.problems.map(withoutPosition), { exitCode: error.exitCode, cause: error });
  }
}

function rolloutExists(name: string): AppError {
  const hint = `Change fields: kubectl edit kcr ${name}. To replace all fields, add --dry-run -o yaml, and pipe the object to kubectl replace -f -. Otherwise choose another name`;
  return new AppError({ code: 'ROLLOUT_EXISTS', message: `${ROLLOUT_KIND} ${name} exists already`, hint }, { exitCode: 3 });
}

function refused(found: readonly { readonly host?: string; readonly message: string }[]): AppError {
  return new AppError(
    found.map((one) => ({ code: 'ROLLOUT_REFUSED', ...one })),
    { exitCode: 3 },
  );
}
