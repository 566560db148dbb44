import type { Arg } from '../../base/arg.ts';
import { type Catalogue, DEFAULT_MINOR, type Minor } from '../../kubelet/catalogue/catalogue.ts';
import { unknownFlag, wrongArgument } from '../../kubelet/flags/check-extra-args.ts';
import type { ModelSet } from '../config/model.ts';
import type { ConfigFinding } from '../config/origins.ts';

/** A kubelet may be three minors older than its API server (version skew policy). */
const KUBELET_SKEW = 3;

/**
 * Problems of all `kubeletExtraArgs` of a file. The kubelet of the host is not known: a flag is an error if no kubelet that
 * suits the version of the cluster has it, and a warning without a version.
 * @param minor of the cluster; null: not known
 */
export function kubeletArgumentFindings(
  { init, join }: ModelSet,
  { minor, catalogue }: { readonly minor: Minor | null; readonly catalogue: Catalogue },
): readonly ConfigFinding[] {
  const lists = {
    InitConfiguration: init?.nodeRegistration?.kubeletExtraArgs,
    JoinConfiguration: join?.nodeRegistration?.kubeletExtraArgs,
  };
  return Object.entries(lists).flatMap(([kind, args = []]) =>
    args.flatMap((arg, i) => findingsOf(arg, `${kind}.nodeRegistration.kubeletExtraArgs[${i}]`, { minor, catalogue })),
  );
}

function findingsOf(
  arg: Arg,
  path: string,
  { minor, catalogue }: { readonly minor: Minor | null; readonly catalogue: Catalogue },
): readonly ConfigFinding[] {
  const newest = minor ?? DEFAULT_MINOR;
  const unknown = unknownFlag(arg, newest, catalogue);
  if (unknown !== null) {
    const suitable = Array.from({ length: KUBELET_SKEW }, (_, i) => newest - 1 - i);
    const isError = minor !== null && suitable.every((each) => unknownFlag(arg, each, catalogue) !== null);
    return [{ path: `${path}.name`, problem: isError ? unknown : { ...unknown, severity: 'warning' } }];
  }
  const wrong = wrongArgument(arg, newest, catalogue);
  if (wrong !== null) return [{ path: `${path}.value`, problem: wrong }];
  const field = catalogue.flag(arg.name, newest);
  if (field?.deprecation !== 'use-config-file' || field.field === null) return [];
  const problem = {
    code: 'FLAG_DEPRECATED',
    message: `the flag --${arg.name} of the kubelet is deprecated`,
    hint: `Set the field ${field.field} of KubeletConfiguration instead`,
    severity: 'warning' as const,
  };
  return [{ path: `${path}.name`, problem }];
}
