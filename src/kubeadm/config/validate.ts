import {
  discoveryMissing,
  mutuallyExclusive,
  pinMissing,
  requiredWith,
  tokenWithoutAuthentication,
} from '../../codec/document-problems.ts';
import type {
  BootstrapToken,
  BootstrapTokenDiscovery,
  Discovery,
  InitConfiguration,
  JoinConfiguration,
  ModelSet,
  ResetConfiguration,
  UpgradeConfiguration,
} from './model.ts';
import type { ConfigFinding } from './origins.ts';
import * as rules from './rules.ts';
import { clusterFindings } from './validate-cluster.ts';
import {
  endpointFindings,
  findingOfValue,
  findingsOfItems,
  ignoreFindings,
  nodeRegistrationFindings,
  timeoutFindings,
} from './validate-parts.ts';

/**
 * All errors of the models. The models have no defaults yet: an absent value is an error only if it has no
 * default. The rules are those of kubeadm 1.36 (app/apis/kubeadm/validation); a stricter rule rejects a value
 * that would fail later on the host or in the API server.
 */
export function* modelFindings({ init, cluster, join, reset, upgrade }: ModelSet): Iterable<ConfigFinding> {
  if (init) yield* initFindings(init);
  if (cluster) yield* clusterFindings(cluster);
  if (join) yield* joinFindings(join);
  if (reset) yield* resetFindings(reset);
  if (upgrade) yield* upgradeFindings(upgrade);
}

function* initFindings(init: InitConfiguration): Iterable<ConfigFinding> {
  const path = 'InitConfiguration';
  yield* nodeRegistrationFindings(`${path}.nodeRegistration`, init.nodeRegistration ?? {});
  for (const [i, token] of (init.bootstrapTokens ?? []).entries()) yield* tokenFindings(`${path}.bootstrapTokens[${i}]`, token);
  yield* endpointFindings(`${path}.localAPIEndpoint`, init.localAPIEndpoint ?? {});
  yield* timeoutFindings(`${path}.timeouts`, init.timeouts ?? {});
}

function* tokenFindings(path: string, token: BootstrapToken): Iterable<ConfigFinding> {
  const { ttl, expires, usages = [], groups = [] } = token;
  yield* findingsOfItems(`${path}.usages`, usages, rules.tokenUsage);
  yield* findingsOfItems(`${path}.groups`, groups, rules.tokenGroup);
  if (usages.length > 0 && usages.every((usage) => usage === 'signing'))
    yield { path: `${path}.usages`, problem: tokenWithoutAuthentication() };
  yield* findingOfValue(`${path}.ttl`, ttl, (text) => rules.notNegative(text, 'For a token that never expires, use 0s'));
  if (ttl !== undefined && expires !== undefined) yield { path: `${path}.expires`, problem: mutuallyExclusive('ttl', 'expires') };
}

function* resetFindings(reset: ResetConfiguration): Iterable<ConfigFinding> {
  const path = 'ResetConfiguration';
  yield* findingOfValue(`${path}.criSocket`, reset.criSocket, rules.criSocket);
  yield* findingOfValue(`${path}.certificatesDir`, reset.certificatesDir, rules.absolutePath);
  yield* ignoreFindings(path, reset);
  yield* timeoutFindings(`${path}.timeouts`, reset.timeouts ?? {});
}

function* upgradeFindings(upgrade: UpgradeConfiguration): Iterable<ConfigFinding> {
  const path = 'UpgradeConfiguration';
  const { apply = {}, node = {}, plan = {}, diff = {} } = upgrade;
  for (const [name, part] of Object.entries({ apply, node })) {
    // The path of a flag is relative to the working directory; a relative path in a file would be ambiguous.
    for (const finding of findingOfValue(`${path}.${name}.patches.directory`, part.patches?.directory, rules.absolutePath)) {
      yield { ...finding, notForFlags: true };
    }
  }
  for (const [name, part] of Object.entries({ apply, node, plan })) {
    yield* ignoreFindings(`${path}.${name}`, part);
  }
  for (const [name, part] of Object.entries({ apply, plan, diff })) {
    yield* findingOfValue(`${path}.${name}.kubernetesVersion`, part.kubernetesVersion, rules.kubernetesVersion);
  }
  yield* timeoutFindings(`${path}.timeouts`, upgrade.timeouts ?? {});
}

export function* joinFindings(join: JoinConfiguration): Iterable<ConfigFinding> {
  const path = 'JoinConfiguration';
  yield* discoveryFindings(`${path}.discovery`, join.discovery ?? {});
  yield* nodeRegistrationFindings(`${path}.nodeRegistration`, join.nodeRegistration ?? {});
  yield* endpointFindings(`${path}.controlPlane.localAPIEndpoint`, join.controlPlane?.localAPIEndpoint ?? {});
  yield* findingOfValue(`${path}.caCertPath`, join.caCertPath, rules.caCertPath);
  yield* timeoutFindings(`${path}.timeouts`, join.timeouts ?? {});
}

function* discoveryFindings(path: string, { bootstrapToken, file }: Discovery): Iterable<ConfigFinding> {
  const both = bootstrapToken !== undefined && file !== undefined;
  if (!bootstrapToken && !file) yield { path, problem: discoveryMissing(), missing: true };
  if (both) {
    const name = 'discovery by token';
    const problem = mutuallyExclusive('discovery by file', name);
    yield { path: `${path}.file`, problem, conflictsWith: { path: `${path}.bootstrapToken`, name } };
  }
  if (file) yield* findingOfValue(`${path}.file.kubeConfigPath`, file.kubeConfigPath, rules.discoveryFile);
  if (file && !both && file.kubeConfigPath === undefined) {
    yield { path: `${path}.file.kubeConfigPath`, problem: requiredWith('a path or URL', 'for discovery by file'), missing: true };
  }
  if (bootstrapToken) yield* tokenValueFindings(`${path}.bootstrapToken`, bootstrapToken);
  if (bootstrapToken && !both) yield* tokenMissingFindings(`${path}.bootstrapToken`, bootstrapToken);
}

function* tokenValueFindings(path: string, { apiServerEndpoint, caCertHashes }: BootstrapTokenDiscovery): Iterable<ConfigFinding> {
  yield* findingOfValue(`${path}.apiServerEndpoint`, apiServerEndpoint, rules.apiServerEndpoint);
  yield* findingsOfItems(`${path}.caCertHashes`, caCertHashes, rules.caPin);
}

function* tokenMissingFindings(path: string, discovery: BootstrapTokenDiscovery): Iterable<ConfigFinding> {
  const { token, apiServerEndpoint, caCertHashes = [], unsafeSkipCAVerification } = discovery;
  const reason = 'for discovery by token';
  if (apiServerEndpoint === undefined) {
    yield {
      path: `${path}.apiServerEndpoint`,
      problem: requiredWith('the endpoint ADDRESS:PORT of the API server', reason),
      missing: true,
    };
  }
  if (token === undefined) {
    const problem = requiredWith('a bootstrap token', reason, 'Pass --token (printed by kubeletadm token create on a control plane)');
    yield { path: `${path}.token`, problem, missing: true };
  }
  if (caCertHashes.length === 0 && !unsafeSkipCAVerification) yield { path: `${path}.caCertHashes`, problem: pinMissing(), missing: true };
}
