import type { DesiredFile } from '../../host/plan/diff-file.ts';
import { KUBELET_DIR, KUBERNETES_DIR } from '../../kube/well-known.ts';
import type { KubeletStartInput } from '../phases/kubelet-start.ts';
import type { NodeDesign } from '../render/node-design.ts';
import type { NodeOptions } from './node-options.ts';

/** The part of the input of kubelet-start that a design settles. */
export function kubeletStartInput(design: NodeDesign, options: NodeOptions): KubeletStartInput {
  const { instanceConfig, configYaml, flagsEnv } = design.files;
  return {
    files: [...(instanceConfig === null ? [] : [instanceConfig]), configYaml, flagsEnv],
    unitFiles: design.unit.files,
    directories: [{ path: KUBELET_DIR, mode: 0o700 }],
    health: { url: design.healthzUrl, timeoutMs: options.kubeletHealthCheckMs },
    mayChown: !options.staged,
    proof: {
      nodeName: design.nodeName,
      minor: design.minor,
      catalogue: options.catalogue,
      flags: [...design.flags.map(({ name, value }) => `--${name}=${value}`), ...design.unit.extraArgs],
    },
  };
}

/**
 * The same for a host that becomes a node: its directory /etc/kubernetes is made, and its credentials are written first.
 * @param credentials files the kubelet logs in with; none where they are written by other phases
 */
export function newNodeStartInput(design: NodeDesign, options: NodeOptions, credentials: readonly DesiredFile[]): KubeletStartInput {
  const { files, directories, ...start } = kubeletStartInput(design, options);
  return { ...start, files: [...credentials, ...files], directories: [...directories, { path: KUBERNETES_DIR, mode: 0o755 }] };
}
