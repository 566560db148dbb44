import { mutuallyExclusive, tokenWithoutAuthentication } from '../../codec/document-problems.ts';
import type { BootstrapToken, InitConfiguration, ModelSet, ResetConfiguration, UpgradeConfiguration } from './model.ts';
import type { ConfigFinding } from './origins.ts';
import * as rules from './rules.ts';
import { clusterFindings } from './validate-cluster.ts';
import { joinFindings } from './validate-join.ts';
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
  yield* ignoreFindings(`${path}.ignorePreflightErrors`, reset.ignorePreflightErrors);
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
    yield* ignoreFindings(`${path}.${name}.ignorePreflightErrors`, part.ignorePreflightErrors);
  }
  for (const [name, part] of Object.entries({ apply, plan, diff })) {
    yield* findingOfValue(`${path}.${name}.kubernetesVersion`, part.kubernetesVersion, rules.kubernetesVersion);
  }
  yield* timeoutFindings(`${path}.timeouts`, upgrade.timeouts ?? {});
}
