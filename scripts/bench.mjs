// npm run bench: ratios measured in one run, never absolute times.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const bundle = fileURLToPath(new URL('../dist/kubeletadm.mjs', import.meta.url));
if (!existsSync(bundle)) {
  console.error('dist/kubeletadm.mjs does not exist. Run npm run build.');
  process.exit(2);
}

const RUNS = Number(process.env.BENCH_RUNS ?? 30);
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
// Without the user's variables: additional CA certificates (NODE_EXTRA_CA_CERTS) dominate the startup time of
// Node.js.
const { PATH, HOME } = process.env;
const env = { PATH, HOME };
const timeMs = (args, expected = 0) => {
  const start = process.hrtime.bigint();
  const { status } = spawnSync(process.execPath, args, { stdio: 'ignore', env });
  if (status !== expected) throw new Error(`node ${args.join(' ')} exited with code ${status}, expected ${expected}`);
  return Number(process.hrtime.bigint() - start) / 1e6;
};

/** Runs both in turn, so that other load on the host affects both equally. */
function compare(name, args, limit) {
  const [base, ours] = [[], []];
  for (let i = 0; i < RUNS; i++) {
    base.push(timeMs(['-e', '0']));
    ours.push(timeMs(args));
  }
  const ratio = median(ours) / median(base);
  const wanted = limit === undefined ? '' : ` (wanted: at most ${limit})`;
  console.log(
    `${name.padEnd(36)} ${median(ours).toFixed(0).padStart(5)} ms / ${median(base).toFixed(0)} ms = ${ratio.toFixed(2)}${wanted}`,
  );
}

const FILES = 10_000;

/** A KubeletConfiguration like kubeadm's, each with different values, one in ten with an error. */
const configuration = (i) => `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 0s
    cacheUnauthorizedTTL: 0s
cgroupDriver: systemd
clusterDNS:
- 10.96.${Math.floor(i / 250)}.${i % 250}
clusterDomain: cluster.local
evictionHard:
  imagefs.available: 15%
  memory.available: "${100 + (i % 400)}Mi"
  nodefs.available: 10%
featureGates: {NodeSwap: true}
healthzBindAddress: 127.0.0.1
healthzPort: ${i % 10 === 0 ? 70_000 : 10_248}
kubeReserved:
  cpu: 200m
  memory: ${i}Mi
logging:
  flushFrequency: 5s
  options:
    json:
      infoBufferSize: "0"
  verbosity: ${i % 5}
maxPods: ${110 + (i % 100)} # what the network can give
memorySwap: {}
nodeStatusReportFrequency: 5m
rotateCertificates: true
shutdownGracePeriod: 60s
shutdownGracePeriodCriticalPods: 20s
staticPodPath: /etc/kubernetes/manifests
`;

/** Many files in one process; its startup time is measured with one file and subtracted. */
function measureFiles(folder, limit) {
  const files = Array.from({ length: FILES }, (_, i) => {
    const file = join(folder, `${i}.yaml`);
    writeFileSync(file, configuration(i));
    return file;
  });
  const one = timeMs([bundle, 'config', 'validate', files[1]]);
  // The fastest run is used: other load on the host only adds time.
  const all = Math.min(...[1, 2, 3].map(() => timeMs([bundle, 'config', 'validate', ...files], 2)));
  const rate = FILES / ((all - one) / 1000);
  console.log(
    `${`config validate, ${FILES} files`.padEnd(36)} ${all.toFixed(0).padStart(5)} ms = ${rate.toFixed(0)} files/s (wanted: at least ${limit})`,
  );
}

console.log(`node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? 'CPU'}, medians of ${RUNS} runs`);
const folder = mkdtempSync(join(tmpdir(), 'kubeletadm-bench-'));
try {
  writeFileSync(join(folder, 'one.yaml'), configuration(1));
  compare('kubeletadm --help / node -e 0', [bundle, '--help'], 2.5);
  compare('config validate ONE / node -e 0', [bundle, 'config', 'validate', join(folder, 'one.yaml')]);
  measureFiles(folder, 2000);
} finally {
  rmSync(folder, { recursive: true });
}
