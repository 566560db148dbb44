import { maskSecrets } from '../../base/text/mask.ts';
import { SensitiveText } from '../../base/text/secret.ts';
import { digestOf } from '../../codec/json-text.ts';
import { hookText } from '../../host/hooks.ts';
import { type Change, changedRef, isClusterChange } from '../../host/plan/change.ts';
import { type HostPlan, maskObject } from '../../host/plan/document.ts';
import { withoutTexts } from '../../host/plan/same-plan.ts';
import { NODE_SETTINGS_PATH } from '../../kubeadm/node-settings/node-settings.ts';

/**
 * The planned operations of a host, in order: subject, and a digest that includes the previous content.
 * Secrets are excluded.
 */
export type Operations = readonly (readonly [what: string, digest: string])[];

/**
 * The operations of a plan. Unconfirmed changes of a previous run are excluded, because applying the plan
 * again resumes them.
 */
export function operationsOf({ phases }: HostPlan): Operations {
  return phases.flatMap(({ phase, plan }) => [
    ...plan.changes
      .filter(({ kind }) => kind !== 'confirm-commit')
      .map(withoutTime)
      .map((change) => [`${phase} ${subjectOf(change)}`, shortDigest(neutral(change))] as const),
    ...(plan.deferred === undefined ? [] : [[`${phase} later`, shortDigest(plan.deferred)] as const]),
  ]);
}

const BACKUP = /^(\/etc\/kubernetes\/tmp\/kubeadm-kubelet-config)-\d[\d-]*\d(?=\/|$)/;

/** The backup directory of a control plane's previous files is named by the time of the run. */
function withoutTime(change: Change): Change {
  return 'path' in change ? { ...change, path: change.path.replace(BACKUP, '$1') } : change;
}

/**
 * The differences between planned and current operations; empty if equal. An object to create that no current operation
 * changes exists by now as it was planned: this is no difference.
 */
export function differingOperations(before: Operations, now: Operations): readonly string[] {
  const objectOf = (what: string): string => what.split(' ').slice(2).join(' ');
  const planned = before.filter(
    ([what]) => what.split(' ')[1] !== 'create-object' || now.some((other) => objectOf(other[0]) === objectOf(what)),
  );
  const differing = (a: Operations, b: Operations): readonly string[] =>
    a.filter(([what, digest]) => !b.some((other) => other[0] === what && other[1] === digest)).map(([what]) => what);
  const found = [...new Set([...differing(planned, now), ...differing(now, planned)])];
  const inOrder = planned.length === now.length && planned.every(([what], i) => now[i]?.[0] === what);
  return found.length > 0 || inOrder ? found : ['order of the operations'];
}

function subjectOf(change: Change): string {
  if (isClusterChange(change)) {
    const { kind, name } = changedRef(change);
    return `${change.kind} ${kind} ${name}`;
  }
  const subject = subjectOfHostChange(change);
  return `${change.kind} ${subject}`.trim();
}

/** The subject of a host change: a path, a unit, packages. */
export function subjectOfHostChange(change: Readonly<Record<string, unknown>>): string {
  const { path, to, unit, component, image, packages, module, name, command, images } = change;
  if (Array.isArray(command)) return hookText(command.map(String));
  if (Array.isArray(images)) return images.join(' ');
  if (change.kind === 'copy-directory') return `${path} to ${to}`;
  const subject = path ?? unit ?? component ?? image ?? (Array.isArray(packages) ? packages.join(' ') : (module ?? name));
  return subject === undefined ? '' : String(subject);
}

function neutral(planned: Change): unknown {
  const change = withoutTexts(planned);
  switch (change.kind) {
    case 'write-file': {
      if (change.summary !== undefined) return withoutGeneratedContent(change);
      const sensitive = change.content instanceof SensitiveText;
      const before =
        change.before === null
          ? null
          : { ...change.before, content: sensitive ? maskSecrets(change.before.content) : change.before.content };
      return { ...change, content: change.content.toString(), before };
    }
    case 'remove-file':
      return { ...change, before: change.before && { ...change.before, content: maskSecrets(change.before.content) } };
    case 'upload-file':
    case 'put-file':
      return { ...change, content: change.content.sha256 };
    case 'create-object':
      return { ...change, object: maskObject(change.object) };
    case 'update-object':
      return { ...change, object: maskObject(change.object), before: maskObject(change.before) };
    default:
      return change;
  }
}

/**
 * Generated keys and certificates differ each time, including their start time; only their subject is
 * compared.
 */
function withoutGeneratedContent({
  content: _,
  before,
  summary,
  ...change
}: Omit<Extract<Change, { kind: 'write-file' }>, 'reason'>): unknown {
  const { notBefore: _from, notAfter: _to, ...certificate } = summary?.certificate ?? {};
  return { ...change, existing: before !== null, certificate, kubeconfig: summary?.kubeconfig };
}

/** Long enough to distinguish texts that were not forged to collide. */
function shortDigest(value: unknown): string {
  return digestOf(value).slice('sha256:'.length, 'sha256:'.length + 32);
}

/**
 * The changes that text shows and counts. The file with the declared node settings is omitted, because it
 * follows from the other changes, unless it is the only change.
 */
export function shownChanges<C extends { readonly path?: unknown }>(changes: readonly C[], verbosity: number): readonly C[] {
  const others = verbosity > 0 ? changes : changes.filter(({ path }) => path !== NODE_SETTINGS_PATH);
  return others.length === 0 ? changes : others;
}
