import type { RequestOptions } from 'node:https';
import { isAbsolute, join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import type { Json, JsonObject } from '../../base/json.ts';
import type { KubeconfigCluster, KubeconfigTarget } from '../kubeconfig.ts';
import type { CredentialMaterial } from './credential-material.ts';

/** Makes agent and headers for one kubeconfig context, again and again: what plugins gave is remembered as long as they say. */
export type PrepareOptions = (material: CredentialMaterial) => Promise<RequestOptions>;

/**
 * Leaves to @kubernetes/client-node what is hard: credential plugins, OIDC and other auth-providers.
 * @param folder relative paths in the kubeconfig count from here
 */
export function clientNodeOptions(target: KubeconfigTarget, folder: string): PrepareOptions {
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
  // client-node wants plain HTTP to be marked as unverified.
  return { server, skipTLSVerify: insecureSkipTlsVerify || server.startsWith('http:'), tlsServerName, proxyUrl };
}

/** Completes what client-node leaves out: the plugin's path counts from the kubeconfig, and the plugin is told what it is asked for. */
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
