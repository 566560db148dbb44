import { KUBELET_DIR } from '../../kube/well-known.ts';
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
