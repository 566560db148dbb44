// npm run test:real: the contract, join and agent tests against real Kubernetes binaries in the folder KUBEBUILDER_ASSETS.
// Test files as arguments replace this selection; the other arguments are passed to vitest.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeRunDirectory } from './run-directory.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = process.env.KUBEBUILDER_ASSETS;
const why = !folder
  ? 'KUBEBUILDER_ASSETS names no folder with kube-apiserver, etcd, kube-controller-manager and kubelet'
  : existsSync(join(folder, 'kube-apiserver'))
    ? null
    : `kube-apiserver not found in ${folder} (KUBEBUILDER_ASSETS)`;
if (why !== null) {
  console.log(`skipped: all tests against real programs: ${why}`);
} else {
  const { env, end } = makeRunDirectory();
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  // Test files on lab hosts share the same hosts, so they run one after another.
  const given = process.argv.slice(2);
  const selected = given.some((argument) => argument.startsWith('test/')) ? [] : ['test/contract/', 'real-'];
  const argv = [vitest, 'run', '--no-file-parallelism', ...selected, ...given];
  const { status } = spawnSync(process.execPath, argv, { cwd: root, stdio: 'inherit', env });
  end();
  process.exitCode = status === 0 ? 0 : 1;
}
