import { describe, expect, it } from 'vitest';
import { execStartWords } from '../../../../src/host/systemd/exec-start.ts';
import { observeUnitTexts } from '../../../../src/host/systemd/observe-unit-texts.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const UNIT = '/lib/systemd/system/kubelet.service';
const USUAL = '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf';
const OWN = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
const LOCAL = '/etc/systemd/system/kubelet.service.d/20-local.conf';
const start = (words: string): string => `[Service]\nExecStart=\nExecStart=/opt/bin/kubelet ${words}\n`;
const FILES = { [UNIT]: '[Service]\nExecStart=/usr/bin/kubelet\n', [USUAL]: start('--a') };
const LOADED = { fragmentPath: UNIT, dropInPaths: [USUAL], needsReload: false };

async function wordsOf(
  files: Readonly<Record<string, string>>,
  unit: Parameters<typeof observeUnitTexts>[1],
  planned: ReadonlyMap<string, string | null> = new Map(),
) {
  const host = fakeHost({ files, commands: { sh: ([, , , , pattern = '']) => ({ stdout: pattern.replace('*', 'one') }) } });
  const texts = await observeUnitTexts(host, unit, { planned });
  return texts === null ? null : (execStartWords(texts.unitFiles, texts.environmentFiles, 'host-a') ?? []).map(({ word }) => word);
}

describe('observeUnitTexts', () => {
  it('reads the files that systemd loaded, in its order', async () => {
    expect(await wordsOf(FILES, LOADED)).toEqual(['/opt/bin/kubelet', '--a']);
  });

  it('reads drop-ins that systemd has not loaded yet', async () => {
    const files = { ...FILES, [LOCAL]: start('--b') };
    expect(await wordsOf(files, { ...LOADED, needsReload: true })).toEqual(['/opt/bin/kubelet', '--b']);
    expect(await wordsOf(files, LOADED)).toEqual(['/opt/bin/kubelet', '--a']);
  });

  it('reads planned files, of which those in /etc win over others of the same name', async () => {
    expect(await wordsOf(FILES, LOADED, new Map([[OWN, start('--own')]]))).toEqual(['/opt/bin/kubelet', '--own']);
    expect(await wordsOf(FILES, LOADED, new Map([[USUAL, null]]))).toEqual(['/usr/bin/kubelet']);
    expect(await wordsOf({}, null, new Map([[UNIT, FILES[UNIT] as string]]))).toEqual(['/usr/bin/kubelet']);
  });

  it('reads planned environment files', async () => {
    const files = {
      ...FILES,
      [USUAL]: `[Service]\nEnvironmentFile=-/e\nExecStart=\nExecStart=/usr/bin/kubelet $ARGS\n`,
      '/e': 'ARGS=--old',
    };
    expect(await wordsOf(files, LOADED)).toEqual(['/usr/bin/kubelet', '--old']);
    expect(await wordsOf(files, LOADED, new Map([['/e', 'ARGS="--new --x"']]))).toEqual(['/usr/bin/kubelet', '--new', '--x']);
  });

  it('expands patterns of environment files', async () => {
    const files = {
      ...FILES,
      [USUAL]: `[Service]\nEnvironmentFile=/e/*.env\nExecStart=\nExecStart=/k $ARGS\n`,
      '/e/one.env': 'ARGS=--one',
    };
    expect(await wordsOf(files, LOADED)).toEqual(['/k', '--one']);
  });

  it('is null without a unit', async () => {
    expect(await wordsOf({}, null)).toBeNull();
  });
});
