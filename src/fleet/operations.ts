import { maskSecrets } from '../base/text/mask.ts';
import { SensitiveText } from '../base/text/secret.ts';
import { digestOf } from '../codec/canonical-json.ts';
import { type Change, changedRef, isClusterChange } from '../host/plan/change.ts';
import { type HostPlan, maskObject } from '../host/plan/document.ts';

/** What is to be done on a host, in order: what it is about, and a digest of all of it, what stands there before among it. Secrets do not count. */
export type Operations = readonly (readonly [what: string, digest: string])[];

/** The operations of a plan. What a run left unconfirmed is none: whoever applies the plan again goes on from there. */
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

/** The directory for the previous files of a control plane is named by the time of the run. */
function withoutTime(change: Change): Change {
  return 'path' in change ? { ...change, path: change.path.replace(BACKUP, '$1') } : change;
}

/** What is different between what was planned and what would be done now; none: nothing is. */
export function differingOperations(planned: Operations, now: Operations): readonly string[] {
  const differing = (a: Operations, b: Operations): readonly string[] =>
    a.filter(([what, digest]) => !b.some((other) => other[0] === what && other[1] === digest)).map(([what]) => what);
  const found = [...new Set([...differing(planned, now), ...differing(now, planned)])];
  const inOrder = planned.length === now.length && planned.every(([what], i) => now[i]?.[0] === what);
  return found.length > 0 || inOrder ? found : ['their order'];
}

function subjectOf(change: Change): string {
  if (isClusterChange(change)) {
    const { kind, name } = changedRef(change);
    return `${change.kind} ${kind} ${name}`;
  }
  const subject = subjectOfHostChange(change);
  return `${change.kind} ${subject}`.trim();
}

/** What a change of a host is about: a path, a unit, packages. */
export function subjectOfHostChange(change: Readonly<Record<string, unknown>>): string {
  const { path, unit, packages, module, name } = change;
  const subject = path ?? unit ?? (Array.isArray(packages) ? packages.join(' ') : (module ?? name));
  return subject === undefined ? '' : String(subject);
}

/** Without what is said to people, and without secrets. */
function neutral({ reason: _, ...change }: Change): unknown {
  switch (change.kind) {
    case 'write-file': {
      if (change.summary !== undefined) return withoutWhatIsNew(change);
      const sensitive = change.content instanceof SensitiveText;
      const before =
        change.before === null
          ? null
          : { ...change.before, content: sensitive ? maskSecrets(change.before.content) : change.before.content };
      return { ...change, content: change.content.toString(), before };
    }
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

/** Keys and certificates are others each time they are made, and begin when they are: what they are about stays. */
function withoutWhatIsNew({ content: _, before, summary, ...change }: Omit<Extract<Change, { kind: 'write-file' }>, 'reason'>): unknown {
  const { notBefore: _from, notAfter: _to, ...certificate } = summary?.certificate ?? {};
  return { ...change, existing: before !== null, certificate, kubeconfig: summary?.kubeconfig };
}

/** Enough to tell two texts apart that nobody made to look alike. */
function shortDigest(value: unknown): string {
  return digestOf(value).slice('sha256:'.length, 'sha256:'.length + 32);
}
