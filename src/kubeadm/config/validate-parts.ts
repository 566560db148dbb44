import type { Arg } from '../../base/arg.ts';
import type { Problem } from '../../base/errors.ts';
import { isDnsSubdomain } from '../../base/text/dns-subdomain.ts';
import {
  duplicateTaint,
  ignoreAllNotAlone,
  invalidTaint,
  nodeNameConflict,
  taintsReplaced,
  unknownCheckName,
} from '../../codec/document-problems.ts';
import type { Taint } from '../../kube/taint.ts';
import { unknownCheck } from './check-names.ts';
import { type ApiEndpoint, argValue, type NodeRegistration, type Timeouts } from './model.ts';
import type { ConfigFinding } from './origins.ts';
import * as rules from './rules.ts';

/** Validation of parts that several kinds share. A path includes the kind. */

/** Applies one rule to an optional value. */
export function* findingOfValue<T>(path: string, value: T | undefined, rule: (value: T) => Problem | null): Iterable<ConfigFinding> {
  const problem = value === undefined ? null : rule(value);
  if (problem) yield { path, problem };
}

/** Applies one rule to each item of a list. */
export function* findingsOfItems(path: string, values: readonly string[] | undefined, rule: rules.Rule): Iterable<ConfigFinding> {
  for (const [i, value] of (values ?? []).entries()) yield* findingOfValue(`${path}[${i}]`, value, rule);
}

/**
 * `nodeRegistration`. Stricter than kubeadm: the name and a `hostname-override` must be equal, otherwise the
 * kubelet cannot register on `init`.
 */
export function* nodeRegistrationFindings(path: string, node: NodeRegistration): Iterable<ConfigFinding> {
  yield* findingOfValue(`${path}.name`, node.name, rules.nodeName);
  yield* findingOfValue(`${path}.criSocket`, node.criSocket, rules.criSocket);
  yield* argumentFindings(`${path}.kubeletExtraArgs`, node.kubeletExtraArgs);
  yield* taintFindings(`${path}.taints`, node.taints ?? []);
  yield* ignoreFindings(path, node);
  const registered = argValue(node.kubeletExtraArgs, 'register-with-taints');
  if (registered !== undefined && (node.taints ?? []).length > 0) yield { path: `${path}.taints`, problem: taintsReplaced(registered) };
  const override = argValue(node.kubeletExtraArgs, 'hostname-override');
  if (node.name !== undefined && override !== undefined && override !== node.name.trim().toLowerCase()) {
    yield { path: `${path}.name`, problem: nodeNameConflict(node.name, override) };
  }
}

export function* argumentFindings(path: string, args: readonly Arg[] | undefined): Iterable<ConfigFinding> {
  for (const [i, { name }] of (args ?? []).entries()) yield* findingOfValue(`${path}[${i}].name`, name, rules.argumentName);
}

const LABEL_PART = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Validates taints like the API server (1.36); kubeadm does not validate them. */
function* taintFindings(path: string, taints: readonly Taint[]): Iterable<ConfigFinding> {
  const seen = new Set<string>();
  for (const [i, { key, value = '', effect }] of taints.entries()) {
    if (!isQualifiedName(key)) yield { path: `${path}[${i}].key`, problem: invalidTaint('key', key) };
    if (value !== '' && !LABEL_PART.test(value)) yield { path: `${path}[${i}].value`, problem: invalidTaint('value', value) };
    if (seen.has(`${key}:${effect}`)) yield { path: `${path}[${i}]`, problem: duplicateTaint(key, effect) };
    seen.add(`${key}:${effect}`);
  }
}

function isQualifiedName(text: string): boolean {
  const slash = text.indexOf('/');
  return LABEL_PART.test(text.slice(slash + 1)) && (slash < 0 || isDnsSubdomain(text.slice(0, slash)));
}

/** `ignorePreflightErrors` of a part of a document: names of checks, or only `all`. */
export function* ignoreFindings(of: string, { ignorePreflightErrors: ids }: Partial<NodeRegistration>): Iterable<ConfigFinding> {
  const path = `${of}.ignorePreflightErrors`;
  const set = new Set(ids?.map((id) => id.toLowerCase()));
  if (set.has('all') && set.size > 1) yield { path, problem: ignoreAllNotAlone() };
  for (const [i, id] of (ids ?? []).entries()) {
    const unknown = unknownCheck(id);
    if (unknown !== null) yield { path: `${path}[${i}]`, problem: unknownCheckName(unknown) };
  }
}

export function* endpointFindings(path: string, endpoint: ApiEndpoint): Iterable<ConfigFinding> {
  yield* findingOfValue(`${path}.advertiseAddress`, endpoint.advertiseAddress, rules.advertiseAddress);
  // Zero means unset in Go: the default is used.
  yield* findingOfValue(`${path}.bindPort`, endpoint.bindPort || undefined, rules.port);
}

export function* timeoutFindings(path: string, timeouts: Timeouts): Iterable<ConfigFinding> {
  for (const [name, timeout] of Object.entries(timeouts)) yield* findingOfValue(`${path}.${name}`, timeout as string, rules.notNegative);
}
