import type { RequestOptions } from 'node:https';
import { isAbsolute, join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import type { Json, JsonObject } from '../../base/json.ts';
import type { KubeconfigCluster, KubeconfigTarget } from '../kubeconfig.ts';

/**
 * Agent and headers for the credentials that a kubeconfig context embeds or references, as base64 of PEM. Credentials from
 * plugins are reused until they expire.
 */
export type PrepareRequestOptions = (material: {
  readonly caData?: string;
  readonly certData?: string;
  readonly keyData?: string;
  readonly token?: string;
}) => Promise<RequestOptions>;

/** Credential plugins, OIDC and other auth-providers. `folder`: base of relative paths in the kubeconfig. */
export function clientNodeOptions(target: KubeconfigTarget, folder: string): PrepareRequestOptions {
  const config = new KubeConfig();
  return async ({ caData, certData, keyData, token }) => {
    config.loadFromOptions({
      clusters: [{ name: 'cluster', caData, ...clusterOptions(target.cluster) }],
      users: [{ name: 'user', certData, keyData, token, authProvider: target.user?.authProvider, exec: execOptions(target, folder) }],
      contexts: [{ name: 'context', cluster: 'cluster', user: 'user' }],
      currentContext: 'context',
    });
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    return options;
  };
}

function clusterOptions({ server, insecureSkipTlsVerify, tlsServerName, proxyUrl }: KubeconfigCluster) {
  // client-node requires plain HTTP to be marked as unverified.
  return { server, skipTLSVerify: insecureSkipTlsVerify || server.startsWith('http:'), tlsServerName, proxyUrl };
}

/** Parts that client-node lacks: a plugin's path is relative to the kubeconfig, and KUBERNETES_EXEC_INFO. */
function execOptions({ user, cluster }: KubeconfigTarget, folder: string): JsonObject | undefined {
  const exec = user?.exec;
  if (!exec) return undefined;
  const command = typeof exec.command === 'string' ? exec.command : '';
  const env = (Array.isArray(exec.env) ? exec.env : []) as readonly Json[];
  const known = { server: cluster.server, ...(cluster.caData === undefined ? {} : { 'certificate-authority-data': cluster.caData }) };
  const info = {
    apiVersion: exec.apiVersion ?? 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    spec: { interactive: false, ...(exec.provideClusterInfo === true ? { cluster: known } : {}) },
  };
  return {
    ...exec,
    args: exec.args ?? [],
    command: command.includes('/') && !isAbsolute(command) ? join(folder, command) : command,
    env: [...env, { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }],
  };
}
