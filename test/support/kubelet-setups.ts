import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { type KubeletSetup, placedFlags } from '../../src/kubelet/effective/kubelet-setup.ts';
import type { HostText } from '../../src/kubelet/effective/running-config.ts';
import { readFlagsEnv } from '../../src/kubelet/flags/flags-env.ts';

const catalogue = await loadCatalogue();

/**
 * A kubelet started by kubeadm's unit with these texts.
 * @param unitArgs words of the unit after those of kubeadm-flags.env
 */
export function kubeadmSetup(
  { configYaml, flagsEnv = '', dropIns = [] }: { configYaml: string; flagsEnv?: string; dropIns?: readonly HostText[] },
  unitArgs: readonly string[] = [],
): KubeletSetup {
  const path = '/var/lib/kubelet/config.yaml';
  const words = [
    { word: '/usr/bin/kubelet', source: 'unit' },
    { word: `--config=${path}`, source: 'unit' },
    ...readFlagsEnv(flagsEnv).map((word) => ({ word, source: 'KUBELET_KUBEADM_ARGS in /var/lib/kubelet/kubeadm-flags.env' })),
    ...unitArgs.map((word) => ({ word, source: 'KUBELET_EXTRA_ARGS in /etc/default/kubelet' })),
  ];
  return {
    words,
    flags: placedFlags(words, { catalogue, minor: 36 }),
    configFile: { path, text: configYaml },
    dynamicConfig: null,
    dropIns,
    files: [],
    missing: [],
  };
}
