import type { Arg } from '../../base/arg.ts';
import { AppError, type Problem } from '../../base/errors.ts';
import { closestName } from '../../base/text/closest-name.ts';
import { expectedFlagValue } from '../../base/text/go-flag-value.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { Warning } from '../../host/plan/change.ts';
import { type Catalogue, formatMinor, type KubeletReader, type Minor } from '../catalogue/catalogue.ts';
import { findFlag, flagKey } from './command-line.ts';

/** Last minor whose kubelet runs the in-tree cloud provider without a feature gate. */
const LAST_IN_TREE: ReadonlyMap<string, Minor> = new Map([
  ['aws', 26],
  ['openstack', 25],
  ['azure', 28],
  ['gce', 28],
  ['vsphere', 28],
]);

export interface KubeletToCheck extends KubeletReader {
  /** The kubelet is not installed yet: the minor is the cluster's, and the future binary may have other flags. */
  readonly assumed: boolean;
}

/**
 * Refuses kubelet flags that would prevent the kubelet from starting or from registering under its name.
 * @returns warnings about flags that may be wrong while the kubelet is not known
 * @throws AppError with exit code 2 and all problems: KUBELET_FLAG_UNKNOWN, FLAG_INVALID_VALUE, NODE_NAME_CONTRADICTED,
 *   CLOUD_PROVIDER_GONE
 */
export function checkExtraArgs(
  registration: { readonly name: string; readonly kubeletExtraArgs: readonly Arg[] },
  { minor, assumed, catalogue }: KubeletToCheck,
): readonly Warning[] {
  const { kubeletExtraArgs: args, name } = registration;
  const unknown = args.map((arg) => unknownFlag(arg, minor, catalogue)).filter((problem) => problem !== null);
  const wrong = args
    .flatMap((arg) => [contradictedName(arg, name), wrongArgument(arg, minor, catalogue)])
    .filter((problem) => problem !== null);
  const problems = assumed ? wrong : [...unknown, ...wrong];
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  return unknown.map(({ code, path, message, hint }) => ({ code, message: `${path}: ${message}. ${hint}` }));
}

/** The problem of a flag that a kubelet of this minor does not have; null if it has the flag. */
export function unknownFlag({ name }: Arg, minor: Minor, catalogue: Catalogue): Problem | null {
  const entry = findFlag(name, { catalogue, minor });
  if ((entry !== undefined && catalogue.flag(entry.flag, minor) !== null) || name === 'help' || name === 'version') return null;
  const flags = kubeletFlags(minor, catalogue);
  const kubelet = `${flags.program} has no flag --${name}`;
  const path = `kubeletExtraArgs ${name}`;
  if (entry === undefined) {
    const hint = nearestFlag(name, flags, 'Check the spelling; kubelet --help lists the flags');
    return { code: 'KUBELET_FLAG_UNKNOWN', path, message: kubelet, hint };
  }
  if (minor < entry.since) {
    const message = `${kubelet}: ${formatMinor(entry.since)} is the first version with this flag`;
    return { code: 'KUBELET_FLAG_UNKNOWN', path, message, hint: 'Remove the flag' };
  }
  const hint = entry.field === null ? 'Remove the flag' : `Set the field ${entry.field} of KubeletConfiguration instead`;
  const message = `${kubelet}: the flag was removed in ${formatMinor(entry.removedIn ?? minor)}`;
  return { code: 'KUBELET_FLAG_UNKNOWN', path, message, hint };
}

/** The flags of a kubelet, found as the kubelet does: `_` is equivalent to `-`. */
function kubeletFlags(minor: Minor, catalogue: Catalogue): ProgramFlags {
  const known = (name: string) => catalogue.flag(findFlag(name, { catalogue, minor })?.flag ?? name, minor);
  return {
    program: `a ${formatMinor(minor)} kubelet`,
    typeOf: (name) => known(name)?.type ?? null,
    names: () => [...catalogue.flags.keys()].filter((name) => catalogue.flag(name, minor) !== null),
  };
}

/** A value with which a kubelet of this minor exits at startup. */
export function wrongArgument(arg: Arg, minor: Minor, catalogue: Catalogue): Problem | null {
  const problem = goneProvider(arg, minor) ?? wrongFlagValue(arg, kubeletFlags(minor, catalogue));
  return problem === null ? null : { ...problem, path: `kubeletExtraArgs ${flagKey(arg.name)}` };
}

/**
 * The client certificate and the flag hold the node name: with different names the kubelet cannot register.
 * kubeadm accepts that.
 */
function contradictedName({ name, value }: Arg, nodeName: string): Problem | null {
  if (name !== 'hostname-override' || nodeNameOf(value) === nodeName) return null;
  const message = `hostname-override is ${value}, but the node's name is ${nodeName}: the kubelet cannot register`;
  const hint = 'Set only nodeRegistration.name (--node-name)';
  return { code: 'NODE_NAME_CONTRADICTED', path: 'kubeletExtraArgs hostname-override', message, hint };
}

/**
 * The Node name of a `--hostname-override`.
 * @see kubernetes/kubernetes staging/src/k8s.io/component-helpers/node/util/hostname.go GetHostname (1.36)
 */
export function nodeNameOf(override: string): string {
  return override.trim().toLowerCase();
}

function goneProvider({ name, value }: Arg, minor: Minor): Problem | null {
  if (name !== 'cloud-provider' || value === 'external' || value === '') return null;
  const last = LAST_IN_TREE.get(value);
  if (last !== undefined && minor <= last) return null;
  const message =
    last === undefined
      ? `no kubelet has an in-tree cloud provider ${value}`
      : `a ${formatMinor(minor)} kubelet has no in-tree cloud provider ${value}: ${formatMinor(last)} was the last`;
  return { code: 'CLOUD_PROVIDER_GONE', message, hint: "Use cloud-provider 'external' with a cloud controller manager" };
}

/** The flags of one version of a program. */
export interface ProgramFlags {
  /** `kube-apiserver 1.36` */
  readonly program: string;
  /** The type of a flag; null if this version does not have the flag. */
  readonly typeOf: (name: string) => string | null;
  /** Names of this version, for the nearest one to an unknown name. */
  readonly names: () => Iterable<string>;
}

/** The hint for an unknown flag: the nearest known name, otherwise `otherwise`. */
export function nearestFlag(name: string, { names }: ProgramFlags, otherwise: string): string {
  const nearest = name.length < 3 ? null : closestName(name, names());
  return nearest === null ? otherwise : `Did you mean --${nearest}?`;
}

/** A value with which the program exits while it parses its flags. */
export function wrongFlagValue({ name, value }: Arg, { program, typeOf }: ProgramFlags): Problem | null {
  const expected = expectedFlagValue(typeOf(name) ?? '', value);
  if (expected === null) return null;
  return {
    code: 'FLAG_INVALID_VALUE',
    message: `--${name} of ${program} expects ${expected}, not ${quoteValue(value)}`,
    hint: 'Correct the value',
  };
}
