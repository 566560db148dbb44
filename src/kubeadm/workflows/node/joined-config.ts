import { AppError } from '../../../base/errors.ts';
import type { JsonObject } from '../../../base/json.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { CommandLineWord } from '../../../host/systemd/exec-start.ts';
import { lastFlag } from '../../../host/systemd/try-drop-in.ts';
import { KUBELET_CONF, KUBELET_CONFIG_FILE } from '../../../kube/well-known.ts';
import { readConfigFiles } from '../../../kubelet/effective/healthz-url.ts';

/**
 * The configuration files of the kubelet of a joined host, merged.
 * @param words command line of the kubelet; without `--config`, its kubeconfig shows whether the host has joined
 * @throws AppError NODE_NOT_JOINED
 */
export async function readJoinedConfig({ host, signal }: PhaseContext, words: readonly CommandLineWord[]): Promise<JsonObject> {
  const { path, config } = await readConfigFiles(host, words, signal);
  const decides = path || lastFlag(words, 'kubeconfig')?.value || KUBELET_CONF;
  const isJoined = path !== '' || (await observe(host, fileFacts([decides]), signal)).get(decides) != null;
  if (config !== null && isJoined) return config;
  const usual = decides === KUBELET_CONFIG_FILE || decides === KUBELET_CONF;
  const message = usual
    ? `${decides} does not exist: the host has not joined a cluster`
    : `${decides}, which the command line of the kubelet names, does not exist: the host has not joined a cluster, or the file was removed`;
  throw new AppError(
    { host: host.name, code: 'NODE_NOT_JOINED', message, hint: 'Join the host to the cluster with kubeletadm join' },
    { exitCode: 3 },
  );
}
