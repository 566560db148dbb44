import { type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { payloadDocument } from '../../dynamic/agent/overlay.ts';
import { validatePayload } from '../../dynamic/agent/validate-payload.ts';
import { exceeds, highestImpact, type Impact } from '../../host/plan/impact.ts';
import {
  type Catalogue,
  formatMinor,
  type KubeletReader,
  type Minor,
  NEWEST_MINOR,
  parseMinor,
} from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { isAtOrBelow, leafPath, leavesOf } from '../../kubelet/layers/layers.ts';
import { classifyChanges } from '../../kubelet/validate/classify-changes.ts';
import { type KubeadmConfigSpec, type KubeletPatches, readKubeletPatches } from './kubelet-patches.ts';

/** An operation of a JSON patch. */
interface Operation {
  readonly op: 'add';
  readonly path: string;
  readonly value: string;
}

/** `covered`: the changed fields with their impact; `patch` is empty without changes. `refused`: why the machine must be replaced, as clauses. */
type Decision =
  | { readonly patch: readonly Operation[]; readonly covered: readonly string[] }
  | { readonly refused: readonly [string, ...string[]] };

/**
 * Decides whether the kubelet of an existing machine can take over the kubelet patches of another KubeadmConfig. All of them or
 * none: Cluster API replaces the machine if any difference is left.
 * @param version `spec.version` of the Machine
 * @param at JSON pointer of the spec in its object
 * @returns a patch of the current object that sets the contents of its kubelet patch files, and nothing else
 */
export async function decideUpdate(
  current: KubeadmConfigSpec,
  desired: KubeadmConfigSpec,
  { version, allow, at }: { readonly version: string | undefined; readonly allow: Impact; readonly at: string },
): Promise<Decision> {
  const [before, after] = [readKubeletPatches(current), readKubeletPatches(desired)];
  if ('unreadable' in before) return { refused: [`current kubelet patches: ${before.unreadable}`] };
  if ('unreadable' in after) return { refused: [`desired kubelet patches: ${after.unreadable}`] };
  const moved = movedFiles(before, after);
  if (moved !== null) return { refused: [moved] };
  const changed = after.files.filter(({ content }, i) => content !== before.files[i]?.content);
  if (changed.length === 0) return { patch: [], covered: [] };
  const minor = parseMinor(version ?? '');
  if (minor === null || minor <= LAST_DYNAMIC_MINOR || minor > NEWEST_MINOR)
    return {
      refused: [`the version of the machine is ${version ?? 'not set'}; versions from 1.24 to ${formatMinor(NEWEST_MINOR)} are supported`],
    };
  const reader = { minor, catalogue: await loadCatalogue() };
  const fields = changedFields(before.fields, after.fields, reader);
  const refused = [
    ...fields.flatMap(({ path, impact, why }) =>
      why !== null ? [`${path}: ${why}`] : exceeds(impact, allow) ? [`${path}: ${impact}`] : [],
    ),
    ...(await invalidFields(after.fields, reader)),
  ];
  const [first, ...more] = refused;
  if (first !== undefined) return { refused: [first, ...more] };
  const patch = after.files.flatMap(({ content }, i): Operation[] => {
    const file = before.files[i];
    return file === undefined || file.content === content ? [] : [{ op: 'add', path: `${at}/files/${file.index}/content`, value: content }];
  });
  return { patch, covered: fields.map(({ path, impact }) => `${path} (${impact})`) };
}

/** A file that only one of the configurations has, or that is at another place of the list. */
function movedFiles(before: KubeletPatches, after: KubeletPatches): string | null {
  const [old, now] = [before, after].map(({ files }) => files.map(({ index, path }) => `${index} ${path}`)) as [string[], string[]];
  const other = [...old.filter((file) => !now.includes(file)), ...now.filter((file) => !old.includes(file))][0];
  return other === undefined ? null : `${other.slice(other.indexOf(' ') + 1)}: the file is added, removed or moved`;
}

/** The fields whose value the patches change. `why` is null unless the change is impossible on a running node. */
function changedFields(
  before: JsonObject,
  after: JsonObject,
  reader: KubeletReader,
): readonly { readonly path: string; readonly impact: Impact; readonly why: string | null }[] {
  const [old, now] = [leavesOf(before), leavesOf(after)];
  const classified = new Map(classifyChanges(before, after, reader).map((change) => [leafPath(change.path), change.class]));
  const removed = [...old].filter(([path, value]) => !isEmpty(value) && !now.has(path));
  const set = [...now].filter(([path, value]) => !isEmpty(value) && !jsonEqual(value, old.get(path)));
  return [
    ...removed.map(([path]) => ({ path, impact: 'unsafe' as const, why: 'removed, so a running node would keep its value' })),
    ...set.map(([path]) => {
      // The node has another value than the default where its cluster or kubeadm sets one.
      const isNew = !old.has(path);
      const found = [classified.get(path), isNew ? impactOf(path, reader.catalogue) : 'safe'] as const;
      return { path, impact: highestImpact(found) ?? 'unsafe', why: null };
    }),
  ];
}

function isEmpty(value: Json): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0 && !Array.isArray(value);
}

/** The class of a change of a field from an unknown value. */
function impactOf(path: string, { fields }: Catalogue): Impact {
  const names = [...fields.keys()].filter((field) => isAtOrBelow(path, field));
  const longest = names.reduce((found, name) => (name.length > found.length ? name : found), '');
  const { liveChange = 'unsafe', danger } = fields.get(longest) ?? {};
  return danger?.when !== undefined && 'raised' in danger.when ? 'unsafe' : liveChange;
}

async function invalidFields(fields: JsonObject, { minor, catalogue }: { readonly minor: Minor; readonly catalogue: Catalogue }) {
  const text = JSON.stringify(payloadDocument('configuration', fields));
  const problems = await validatePayload(text, 'kubelet patches', { minors: [minor], native: false, catalogue });
  const errors = problems.filter(({ severity }) => severity !== 'warning');
  return errors.map(({ path, message }) => (path === undefined ? message : `${path}: ${message}`));
}
