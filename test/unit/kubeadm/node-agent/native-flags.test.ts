import { describe, expect, it } from 'vitest';
import { execStartWords, type UnitTexts } from '../../../../src/host/systemd/exec-start.ts';
import { NATIVE_DROP_IN, nativeFlags } from '../../../../src/kubelet/node-agent/native-flags.ts';
import { loadTemplates } from '../../../../src/template-files.ts';

const templates = await loadTemplates();
const D = '/var/lib/kubelet/dynamic-config';
const texts = (command: string, more = 'Restart=always\n', dropIns: UnitTexts['unitFiles'] = []): UnitTexts => ({
  unitFiles: [{ path: '/usr/lib/systemd/system/kubelet.service', text: `[Service]\nExecStart=${command}\n${more}` }, ...dropIns],
  environmentFiles: [],
});
const wordsWith = (found: UnitTexts, text: string): readonly string[] =>
  (execStartWords([...found.unitFiles, { path: NATIVE_DROP_IN, text }], []) ?? []).map(({ word }) => word);

describe('native flags of an old kubelet for its directory', () => {
  it.each([
    [21, ['--dynamic-config-dir=/var/lib/kubelet/dynamic-config']],
    [22, ['--dynamic-config-dir=/var/lib/kubelet/dynamic-config', '--feature-gates=DynamicKubeletConfig=true']],
    [23, ['--dynamic-config-dir=/var/lib/kubelet/dynamic-config', '--feature-gates=DynamicKubeletConfig=true']],
  ])('1.%d: set by a drop-in', (minor, flags) => {
    const found = texts('/usr/bin/kubelet --config=/c --feature-gates=A=true');
    const given = nativeFlags(templates, found, { directory: D, minor });
    const text = given.kind === 'drop-in' ? given.text : '';
    expect(wordsWith(found, text)).toEqual(['/usr/bin/kubelet', '--config=/c', '--feature-gates=A=true', ...flags]);
    expect(text).not.toContain('Restart=');
  });

  it.each(['', 'Restart=on-failure\n'])('restarts the kubelet after exit code 0 (%j)', (restart) => {
    const found = texts('/usr/bin/kubelet --config=/c', restart);
    const given = nativeFlags(templates, found, { directory: D, minor: 21 });
    const text = given.kind === 'drop-in' ? given.text : '';
    expect(text).toContain('\nRestart=always\n');
    // The second run sees its own drop-in, and wants the same.
    expect(
      nativeFlags(templates, { ...found, unitFiles: [...found.unitFiles, { path: NATIVE_DROP_IN, text }] }, { directory: D, minor: 21 }),
    ).toEqual(given);
  });

  it('writes the same text in each release', () => {
    const restarted = nativeFlags(templates, texts('/usr/bin/kubelet --config=/c $EXTRA', 'Restart=always\n'), { directory: D, minor: 21 });
    expect(restarted).toEqual({
      kind: 'drop-in',
      text: `# Written by kubeletadm: where the kubelet keeps configurations from the cluster.
[Service]
ExecStart=
ExecStart=/usr/bin/kubelet --config=/c $EXTRA --dynamic-config-dir=/var/lib/kubelet/dynamic-config
`,
    });
    expect(nativeFlags(templates, texts('/usr/bin/kubelet', ''), { directory: D, minor: 23 })).toEqual({
      kind: 'drop-in',
      text: `# Written by kubeletadm: where the kubelet keeps configurations from the cluster.
[Service]
Restart=always
ExecStart=
ExecStart=/usr/bin/kubelet --dynamic-config-dir=/var/lib/kubelet/dynamic-config --feature-gates=DynamicKubeletConfig=true
`,
    });
  });

  it('changes nothing when other files already set the flags', () => {
    expect(nativeFlags(templates, texts('/usr/bin/kubelet --dynamic-config-dir /other'), { directory: D, minor: 21 })).toEqual({
      kind: 'up-to-date',
    });
    const gated = texts('/usr/bin/kubelet --dynamic-config-dir=/other --feature-gates=A=false,DynamicKubeletConfig=true');
    expect(nativeFlags(templates, gated, { directory: D, minor: 23 })).toEqual({ kind: 'up-to-date' });
    expect(nativeFlags(templates, texts('/usr/bin/kubelet --dynamic-config-dir=/other'), { directory: D, minor: 23 })).toMatchObject({
      kind: 'drop-in',
    });
  });

  it('is impossible in a directory that would be two lines of the unit', () => {
    expect(nativeFlags(templates, texts('/usr/bin/kubelet'), { directory: '/a\nUser=x', minor: 21 })).toMatchObject({
      kind: 'impossible',
      why: '--dynamic-config-dir contains a line break',
    });
  });

  it('is impossible where a later drop-in has the last word', () => {
    const late = {
      path: '/etc/systemd/system/kubelet.service.d/90-own.conf',
      text: '[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --dynamic-config-dir=/x\n',
    };
    expect(nativeFlags(templates, texts('/usr/bin/kubelet', '', [late]), { directory: D, minor: 21 })).toMatchObject({
      kind: 'impossible',
      why: expect.stringContaining('90-own.conf'),
    });
  });
});
