import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { REPOSITORY, sourceFiles } from '../support/source-files.ts';

/**
 * The files of src that name /var/lib/kubelet/config.yaml, and their uses. A kubelet may read another file: kubelet/effective
 * reads its configuration by its command line (`observeKubelet`, or `observeKubeletWords` and `readConfigFiles`).
 */
const USES: Readonly<Record<string, string>> = {
  'src/kube/well-known.ts': 'definition',
  'src/kubeadm/render/group-design.ts': 'writes the file',
  'src/kubeadm/render/config-drop-ins.ts': 'writes the file',
  'src/kubeadm/render/unit-files.ts': 'requires that the written unit names the file',
  'src/kubeadm/phases/kubelet-restart.ts': 'classifies a change of the file',
  'src/kubeadm/phases/kubelet-start.ts': 'writes the file',
  'src/kubeadm/workflows/join.ts': 'queries the file that the phase writes in the first round trip',
  'src/kubeadm/workflows/node/design-observed-node.ts': 'command line of the written unit, if the unit cannot be read',
  'src/kubeadm/workflows/node/explain-takeover.ts': 'whether the written file exists',
  'src/kubeadm/workflows/node/check-designed-node.ts': 'compares the written file with that of the command line',
  'src/kubeadm/workflows/node/joined-config.ts': 'text of a message',
  'src/kubeadm/workflows/node/observe-node-source.ts': 'a file at the usual path is shown without its path',
  'src/kubeadm/workflows/node/observe-setups.ts': 'default if the command line cannot be read',
  'src/kubeadm/workflows/node/restored-files.ts': 'restores the written file',
  'src/kubelet/effective/healthz-url.ts': 'default if the command line cannot be read',
  'src/kubelet/validate/check-node-fields.ts': 'name of the written file in problems',
  'src/dynamic/workflows/enable-config.ts': 'the default of an option is not written',
  'src/cli/agent-command.ts': 'default of an option',
  'src/fleet/drift/drift.ts': 'name of a difference without a field',
};

it('is read as the running configuration nowhere: each file of src that names it has another use', () => {
  const named = sourceFiles('src')
    .map(({ path }) => path)
    .filter((path) =>
      readFileSync(join(REPOSITORY, path), 'utf8')
        .split('\n')
        .some((line) => !/^\s*(?:\*|\/\*|\/\/)/.test(line) && /\bKUBELET_CONFIG_FILE\b|lib\\?\/kubelet\\?\/config\\?\.yaml/.test(line)),
    );
  const unexpected = named.filter((path) => USES[path] === undefined);
  const hint = 'read what the kubelet runs with kubelet/effective, or add the file and its use to this test';
  expect(unexpected, hint).toEqual([]);
  expect(Object.keys(USES).filter((path) => !named.includes(path))).toEqual([]);
});
