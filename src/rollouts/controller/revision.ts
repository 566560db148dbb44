import { isAppError } from '../../base/errors.ts';
import { type JsonObject, jsonEqual } from '../../base/json.ts';
import { canonicalJson } from '../../codec/json-text.ts';
import { OVERLAY_API_VERSION, OVERLAY_KIND } from '../../dynamic/agent/overlay.ts';
import { appendHash } from '../../dynamic/signing/config-map-hash.ts';
import { findPayload } from '../../dynamic/workflows/assign-config.ts';
import { applyPush, planPush } from '../../dynamic/workflows/push-config.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { ownerReference } from '../../kube/object.ts';
import { numberAt } from '../../kubelet/documents/values.ts';
import { type ConfigSource, DEFAULT_CONFIG_KEY, describeSource } from '../../kubelet/layers/config-source.ts';
import { type Rollout, rolloutRef } from '../api/rollout.ts';
import type { Observed } from '../reconcile/observed.ts';

/** On a ControllerRevision: the rollout that it belongs to. */
export const REVISION_LABEL = 'kubeletadm.dev/rollout-name';

/** The name of the revision that `spec.payload` describes. Equal payloads have the same revision. */
export function revisionName({ name, spec: { payload } }: Pick<Rollout, 'name' | 'spec'>): string {
  return appendHash({ name, data: { payload: canonicalJson(payload) } });
}

/**
 * Name and ConfigMap of the revision that `spec.payload` describes.
 * @param namespace that of the controller, which has the ConfigMaps of overlays
 */
export function revisionOf(rollout: Rollout, namespace: string): Observed['revision'] {
  const { name, spec } = rollout;
  const { configMapRef, overlay } = spec.payload;
  const revision = revisionName(rollout);
  if (configMapRef !== undefined) return { name: revision, source: configMapRef };
  const map = appendHash({ name, data: overlayData(overlay) });
  return { name: revision, source: { namespace, name: map, kubeletConfigKey: DEFAULT_CONFIG_KEY } };
}

/** The data of the ConfigMap of an overlay. Equal overlays have equal data. */
export function overlayData(overlay: Rollout['spec']['payload']['overlay']): Readonly<Record<string, string>> {
  const document = { apiVersion: OVERLAY_API_VERSION, kind: OVERLAY_KIND, ...overlay };
  return { [DEFAULT_CONFIG_KEY]: `${JSON.stringify(JSON.parse(canonicalJson(document)), null, 2)}\n` };
}

/**
 * Creates the immutable ConfigMap of an overlay and the ControllerRevision of the payload, as far as they do not exist, and
 * deletes revisions beyond `revisionHistoryLimit`. The ConfigMap has no owner: the garbage collector would delete it with the
 * rollout, while nodes still use it.
 * @returns why the payload cannot be rolled out; null: it can
 */
export async function ensureRevision(
  cluster: Cluster,
  rollout: Rollout,
  revision: Observed['revision'],
  namespace: string,
): Promise<Observed['refusal']> {
  const { name, spec } = rollout;
  const content = await payloadContent(cluster, spec, revision.source);
  if ('refusal' in content) return content.refusal;
  if (spec.payload.overlay !== undefined) {
    const input = { namespace, name, key: DEFAULT_CONFIG_KEY, appendHash: true, inPlace: false };
    await applyPush(cluster, await planPush(cluster, input, content.data));
  }
  await recordRevision(cluster, rollout, revision, namespace);
  return null;
}

/** The content of the ConfigMap of a payload, also before the ConfigMap of an overlay exists; or why it cannot be rolled out. */
export async function payloadContent(
  cluster: Cluster,
  { payload }: Pick<Rollout['spec'], 'payload'>,
  source: ConfigSource,
): Promise<
  { readonly text: string; readonly data: Readonly<Record<string, string>> } | { readonly refusal: NonNullable<Observed['refusal']> }
> {
  if (payload.overlay !== undefined) {
    const data = overlayData(payload.overlay);
    return { text: data[DEFAULT_CONFIG_KEY] ?? '', data };
  }
  const where = describeSource(source);
  try {
    const { isImmutable, ...content } = await findPayload(cluster, source);
    if (isImmutable) return content;
    const message = `ConfigMap ${where} is not immutable: an edit would change all nodes at once. Set immutable: true, or create it with kubeletadm dynamic push`;
    return { refusal: { reason: 'PayloadMutable', message } };
  } catch (error) {
    if (!isAppError(error, 'DYNAMIC_NO_PAYLOAD')) throw error;
    return { refusal: { reason: 'PayloadMissing', message: error.message } };
  }
}

/** The newest revision has the greatest number, also after a return to an earlier payload. */
async function recordRevision(cluster: Cluster, rollout: Rollout, revision: Observed['revision'], namespace: string): Promise<void> {
  const { name, uid, spec, status } = rollout;
  const kind = { apiVersion: 'apps/v1', kind: 'ControllerRevision', namespace };
  const { items } = await cluster.list(kind, { labelSelector: `${REVISION_LABEL}=${name}` });
  const numberOf = (object: JsonObject): number => numberAt(object, 'revision') ?? 0;
  const newest = Math.max(0, ...items.map(numberOf));
  const found = items.find(({ metadata }) => metadata.name === revision.name);
  const ownerReferences = [ownerReference(rolloutRef(name), uid)];
  if (found === undefined) {
    const metadata = { name: revision.name, namespace, labels: { [REVISION_LABEL]: name }, ownerReferences };
    const data = JSON.parse(canonicalJson({ spec: { payload: spec.payload } })) as JsonObject;
    await cluster.create({ apiVersion: kind.apiVersion, kind: kind.kind, metadata, data, revision: newest + 1 });
  } else if (numberOf(found) < newest || !jsonEqual(found.metadata.ownerReferences, ownerReferences)) {
    // The garbage collector deletes revisions of an object that had the same name before.
    const number = numberOf(found) < newest ? newest + 1 : newest;
    await cluster.update({ ...found, metadata: { ...found.metadata, ownerReferences }, revision: number });
  }
  const kept = [revision.name, status.currentRevision, status.updateRevision];
  const old = items.filter(({ metadata }) => !kept.includes(metadata.name)).toSorted((a, b) => numberOf(b) - numberOf(a));
  for (const { metadata } of old.slice(spec.revisionHistoryLimit)) await cluster.delete({ ...kind, name: metadata.name });
}
