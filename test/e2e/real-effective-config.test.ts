import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseJsonObject } from '../../src/base/json.ts';
import { comparable, type EffectiveCase, effectiveLeaves, randomCase, wordsOf } from '../support/effective-cases.ts';
import { startFakeCri } from '../support/fake-cri.ts';
import { requirement } from '../support/requirement.ts';
import { seededRandom } from '../support/seeded-random.ts';

const KUBELET = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubelet');
const CASES = 250;
/** A kubelet waits for its runtime most of the time. */
const WORKERS = 3;
const directory = mkdtempSync(join(tmpdir(), 'effective-'));
const socket = join(directory, 'cri.sock');
/** Without an API server, a kubelet serves configz to anyone with these flags alone. */
const FLAGS = [
  `--container-runtime-endpoint=unix://${socket}`,
  '--anonymous-auth=true',
  '--authentication-token-webhook=false',
  '--authorization-mode=AlwaysAllow',
];

/** Namespaces of each kubelet. Its processes end with it. */
const OWN = ['--mount', '--net', '--pid', '--mount-proc', '--kill-child'];

/**
 * Starts a kubelet in a network of its own, so that all kubelets have the same ports, and prints its configz; nothing if
 * the kubelet exits. Its log is the last argument. Directories outside its root directory are its own as well.
 */
const PRINT_CONFIGZ = `ip link set lo up
for below in /var/log /var/lib /usr/libexec; do mount -t tmpfs own $below; done
log=$1; shift
"$@" >"$log" 2>&1 & kubelet=$!
until curl -sfk -m 5 https://127.0.0.1:10250/configz; do kill -0 $kubelet || break; sleep 0.1; done
kill -9 $kubelet`;

/** The configuration that a kubelet serves at /configz; the end of its log if it serves none. */
async function configzOf(given: EffectiveCase, own: string): Promise<Readonly<Record<string, string>> | string> {
  for (const below of ['dir', 'pki']) mkdirSync(join(own, below), { recursive: true });
  writeFileSync(join(own, 'config.yaml'), given.config);
  for (const [path, text] of Object.entries(given.dropIns)) writeFileSync(join(own, 'dir', path), text);
  const words = (wordsOf(given, own) ?? []).slice(1).map(({ word }) => word);
  const command = [KUBELET, ...words, ...FLAGS, `--cert-dir=${own}/pki`, `--root-dir=${own}/root`];
  const argv = [...OWN, 'sh', '-c', PRINT_CONFIGZ, 'sh', join(own, 'log'), ...command];
  const printed = await new Promise<string>((resolve) => execFile('unshare', argv, { timeout: 30_000 }, (_, stdout) => resolve(stdout)));
  const config = parseJsonObject(printed)?.kubeletconfig;
  if (config === undefined) return `${words.join(' ')}\n${spawnSync('tail', ['-3', join(own, 'log')], { encoding: 'utf8' }).stdout}`;
  return comparable(config as never, own);
}

function whyNoKubelet(): string | null {
  if (process.env.KUBEBUILDER_ASSETS === undefined || !existsSync(KUBELET)) return 'no kubelet in KUBEBUILDER_ASSETS';
  return spawnSync('unshare', [...OWN, 'ip', 'link', 'set', 'lo', 'up']).status === 0 ? null : 'no new network namespace';
}

describe.skipIf(requirement('kubelet', whyNoKubelet()))('the effective configuration', () => {
  let cri: { close(): void };
  beforeAll(async () => {
    cri = await startFakeCri(socket);
  });
  afterAll(() => {
    cri.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it(`equals the configz of a real kubelet, for ${CASES} units, drop-ins, command lines, files and directories`, async () => {
    const random = seededRandom(31);
    const cases = Array.from({ length: CASES }, () => randomCase(random));
    let served = 0;
    const work = async (): Promise<void> => {
      for (let i = cases.length; cases.length > 0; i = cases.length) {
        const given = cases.pop() as EffectiveCase;
        const own = join(directory, String(i));
        expect(effectiveLeaves(given, own, FLAGS), JSON.stringify(given)).toEqual(await configzOf(given, own));
        rmSync(own, { recursive: true, force: true });
        served++;
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
    expect(served).toBe(CASES);
  }, 900_000);
});
