import { describe, expect, it } from 'vitest';
import { parseUnitFile, sameUnitFile, unitValues } from '../../../../src/host/systemd/unit-file.ts';
import { fixture } from '../../../support/fixture.ts';

/** Output of `systemctl show -p Description` of systemd 252; repeated spaces are not compared. */
const AS_SYSTEMD_252: readonly (readonly [text: string, description: string | undefined])[] = [
  ['Description=a \\\n   b\n', 'a b'],
  ['Description=a \\ \nb\n', 'a \\'],
  ['Description=a \\\\\nb\n', 'a \\\\'],
  ['Description=a\\\\\\\nb\n', 'a\\\\ b'],
  ['Description=a \\\n# comment\nb\n', 'a b'],
  ['Description=a \\\n #c \\\n b\n', 'a b'],
  ['Description=a \\\n\nb\n', 'a'],
  ['Description=a \\\n  \n b\n', 'a'],
  ['Description=a\\\nb\n', 'a b'],
  [' Description = x y  \n', 'x y'],
  ['Description=a \\\n; c\n   b  \\\n c\n', 'a b c'],
  ['Description=a \\\nDocumentation=man:x\n', 'a Documentation=man:x'],
  ['Description=a # b\n', 'a # b'],
  ['Description="a b"\n', '"a b"'],
  ['description=a\n', undefined],
  ['Description=a\\', 'a'],
  ['Description=a \\\r\nb\r\n', 'a b'],
  ['Description=x\n  # Description=y\n', 'x'],
  ['Description\nDescription=k\n', 'k'],
  ['=x\nDescription=k\n', 'k'],
];

describe('parseUnitFile', () => {
  it.each(AS_SYSTEMD_252)('reads %j like systemd 252', (text, description) => {
    const value = unitValues(parseUnitFile(`[Unit]\n${text}`), 'Unit', 'Description').at(-1);
    expect(value?.replace(/ +/g, ' ')).toBe(description);
  });

  it('reads a unit file of a distribution', () => {
    const directives = parseUnitFile(fixture(import.meta.url, '../facts/fixtures/systemd-252/cat-ssh.txt'));
    expect(unitValues(directives, 'Service', 'EnvironmentFile')).toEqual(['-/etc/default/ssh']);
    expect(unitValues(directives, 'Service', 'ExecReload')).toEqual(['/usr/sbin/sshd -t', '/bin/kill -HUP $MAINPID']);
    expect(unitValues(directives, 'Install', 'WantedBy')).toEqual(['multi-user.target']);
  });

  it('keeps equals signs of the value and the section of each directive', () => {
    expect(parseUnitFile('A=0\n[S]\nEnvironment="A=b=c"\n[T]\nB=1\n')).toEqual([
      { section: '', line: 1, name: 'A', value: '0' },
      { section: 'S', line: 3, name: 'Environment', value: '"A=b=c"' },
      { section: 'T', line: 5, name: 'B', value: '1' },
    ]);
  });
});

describe('unitValues', () => {
  it('drops values before an empty assignment', () => {
    expect(unitValues(parseUnitFile('[Service]\nExecStart=/a\nExecStart=\nExecStart=/b\nExecStart=/c\n'), 'Service', 'ExecStart')).toEqual([
      '/b',
      '/c',
    ]);
  });

  it('ignores other sections', () => {
    expect(unitValues(parseUnitFile('[Unit]\nX=1\n[Service]\nX=2\n'), 'Service', 'X')).toEqual(['2']);
  });
});

describe('sameUnitFile', () => {
  const file = '[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $A\n';

  it.each([
    ['comments and blank lines', `# ours\n\n${file}; end\n`, true],
    ['spaces around the equals sign', file.replace('ExecStart=/', 'ExecStart = /'), true],
    ['CRLF', file.replaceAll('\n', '\r\n'), true],
    ['another binary', file.replace('/usr/bin', '/usr/local/bin'), false],
    ['another order', '[Service]\nExecStart=/usr/bin/kubelet $A\nExecStart=\n', false],
    ['an additional directive', `${file}Restart=always\n`, false],
    ['another section', file.replace('Service', 'Unit'), false],
  ])('%s', (_, other, same) => {
    expect(sameUnitFile(file, other)).toBe(same);
    expect(sameUnitFile(other, file)).toBe(same);
  });
});
