import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { comparable, type EffectiveCase, effectiveLeaves, randomCase, wordsOf } from '../support/effective-cases.ts';
import { requirement } from '../support/requirement.ts';
import { seededRandom } from '../support/seeded-random.ts';

const KUBELET = join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubelet');
const missing = process.env.KUBEBUILDER_ASSETS === undefined || !existsSync(KUBELET) ? 'no kubelet in KUBEBUILDER_ASSETS' : null;
const CASES = 250;
const directory = mkdtempSync(join(tmpdir(), 'effective-'));

/** The configuration that a kubelet logs before it registers the same value as configz; it exits without a lock file. */
function configurationOf(given: EffectiveCase): Readonly<Record<string, string>> | string {
  rmSync(directory, { recursive: true, force: true });
  for (const below of ['dir', 'pki']) mkdirSync(join(directory, below), { recursive: true });
  for (const [path, text] of Object.entries({ 'config.yaml': given.config, 'pki/kubelet.crt': '', 'pki/kubelet.key': '' }))
    writeFileSync(join(directory, path), text);
  for (const [name, text] of Object.entries(given.dropIns)) writeFileSync(join(directory, 'dir', name), text);
  const words = (wordsOf(given, directory) ?? []).slice(1).map(({ word }) => word);
  const own = [`--cert-dir=${directory}/pki`, `--root-dir=${directory}/root`, '--lock-file=', '--exit-on-lock-contention=true'];
  const { stdout, stderr } = spawnSync(KUBELET, [...words, ...own], { encoding: 'utf8', timeout: 20_000 });
  const logged = /configuration=<\n([\s\S]*?)\n >/.exec(`${stdout}${stderr}`)?.[1];
  return logged === undefined ? `${words.join(' ')}\n${stderr}` : comparable(JSON.parse(logged), directory);
}

describe.skipIf(requirement('kubelet', missing))('the effective configuration', () => {
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it(`equals that of a real kubelet, for ${CASES} units, drop-ins, command lines, files and directories`, () => {
    const random = seededRandom(31);
    for (let i = 0; i < CASES; i++) {
      const given = randomCase(random);
      expect(effectiveLeaves(given, directory), JSON.stringify(given)).toEqual(configurationOf(given));
    }
  }, 300_000);
});
