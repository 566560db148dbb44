import { discoveryMissing, mutuallyExclusive, pinMissing, requiredWith } from '../../codec/document-problems.ts';
import type { BootstrapTokenDiscovery, Discovery, JoinConfiguration } from './model.ts';
import type { ConfigFinding } from './origins.ts';
import * as rules from './rules.ts';
import { endpointFindings, findingOfValue, findingsOfItems, nodeRegistrationFindings, timeoutFindings } from './validate-parts.ts';

/** All errors of a JoinConfiguration. */
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
