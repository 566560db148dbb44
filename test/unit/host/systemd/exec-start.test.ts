import { describe, expect, it } from 'vitest';
import { environmentFilesOf, execStartWords, type UnitSourceFile } from '../../../../src/host/systemd/exec-start.ts';

const UNIT: UnitSourceFile = { path: '/lib/kubelet.service', text: '[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n' };
const DROP_IN: UnitSourceFile = {
  path: '/lib/kubelet.service.d/10-kubeadm.conf',
  text: `[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml" ONE=1
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
};
const FLAGS: UnitSourceFile = { path: '/var/lib/kubelet/kubeadm-flags.env', text: 'KUBELET_KUBEADM_ARGS="--node-ip=10.0.0.1 --v=2"\n' };
const EXTRA: UnitSourceFile = { path: '/etc/default/kubelet', text: 'KUBELET_EXTRA_ARGS=--node-labels="a=b c"\n' };

describe('execStartWords', () => {
  it('expands the command from the unit, its drop-in and environment files, each word with its source', () => {
    const place = ({ path }: UnitSourceFile, variable?: string) => ({
      source: variable === undefined ? path : `${variable} in ${path}`,
      file: path,
    });
    expect(execStartWords([UNIT, DROP_IN], [FLAGS, EXTRA])).toEqual([
      { word: '/usr/bin/kubelet', ...place(DROP_IN) },
      { word: '--config=/var/lib/kubelet/config.yaml', ...place(DROP_IN) },
      { word: '--node-ip=10.0.0.1', ...place(FLAGS, 'KUBELET_KUBEADM_ARGS') },
      { word: '--v=2', ...place(FLAGS, 'KUBELET_KUBEADM_ARGS') },
      { word: '--node-labels=a=b c', ...place(EXTRA, 'KUBELET_EXTRA_ARGS') },
    ]);
  });

  it.each<[string, string, readonly UnitSourceFile[], readonly string[] | null]>([
    ['no variable set', 'ExecStart=/k $NONE --a', [], ['/k', '--a']],
    ['braces keep the value as one word', 'Environment="A=x y"\nExecStart=/k --b=${A} ${A}', [], ['/k', '--b=x y', 'x y']],
    ['an escaped dollar sign', 'ExecStart=/k --b=$$A', [], ['/k', '--b=$A']],
    ['prefixes of the program', 'ExecStart=-+/k --a', [], ['/k', '--a']],
    ['files win over Environment=', 'Environment=A=1\nExecStart=/k $A', [{ path: '/e', text: 'A=2' }], ['/k', '2']],
    ['a file that does not exist', 'ExecStart=/k $A', [{ path: '/e', text: null }], ['/k']],
    ['a list reset by an empty assignment', 'Environment=A=1\nEnvironment=\nExecStart=/k $A', [], ['/k']],
    // Seen with systemd 252.
    ['a variable with more text has another name', 'Environment=A=1\nExecStart=/k $A-b c', [], ['/k', 'c']],
    ['C escapes', 'ExecStart=/k a\\x20b a\\sb', [], ['/k', 'a b', 'a b']],
    ['unknown escapes', 'ExecStart=/k a\\qb "x\\q y"', [], ['/k', 'a\\qb', 'x\\q y']],
    ['a name for the process', 'ExecStart=@/k name --a', [], ['/k', '--a']],
    ['no variables', 'Environment=A=1\nExecStart=:/k $A ${A}', [], ['/k', '$A', '${A}']],
    ['specifiers', 'Environment=A=b%%x\nExecStart=/k %% %n %p ${A}', [], ['/k', '%', 'kubelet.service', 'kubelet', 'b%x']],
    ['a variable that does not exist', 'ExecStart=/k ${NONE} $NONE z', [], ['/k', '', 'z']],
    ['a quoted variable', 'Environment="A=1 \'2 3\'"\nExecStart=/k "$A"', [], ['/k', '1', '2 3']],
    ['a semicolon', 'ExecStart=/k \\; x ; /other', [], ['/k', ';', 'x']],
    ['no command', 'Restart=always', [], null],
  ])('%s', (_, text, files, words) => {
    const found = execStartWords([{ path: '/u', text: `[Service]\n${text}\n` }], files);
    expect(found === null ? null : found.map(({ word }) => word)).toEqual(words);
  });
});

describe('environmentFilesOf', () => {
  it('lists the files in order without the dash; an empty assignment resets the list', () => {
    expect(environmentFilesOf([UNIT, DROP_IN])).toEqual(['/var/lib/kubelet/kubeadm-flags.env', '/etc/default/kubelet']);
    expect(environmentFilesOf([DROP_IN, { path: '/z', text: '[Service]\nEnvironmentFile=\nEnvironmentFile=/only\n' }])).toEqual(['/only']);
  });
});
