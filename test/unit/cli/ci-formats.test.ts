import { expect, it } from 'vitest';
import { renderAnnotations, renderJUnit } from '../../../src/cli/output/ci-formats.ts';

it('a GitHub annotation names file, line and title, and escapes what ends a property or a message', () => {
  const place = { severity: 'error', file: './a,b:c.yaml', line: 3, column: 5 } as const;
  expect(renderAnnotations([{ ...place, title: 'A: 5%', message: 'first\r\n100% ::warning::x' }])).toBe(
    '::error file=a%2Cb%3Ac.yaml,line=3,col=5,title=A%3A 5%25::first%0D%0A100%25 ::warning::x\n',
  );
  expect(renderAnnotations([{ severity: 'warning', file: undefined, title: 'T', message: 'm' }])).toBe('::warning title=T::m\n');
  expect(renderAnnotations([])).toBe('');
});

it('a JUnit report has a test case for each host or file, with one failure that lists all', () => {
  const failures = ['<a> & "b"', 'second\u001b[31m\uffff'].map((message) => ({ type: 'CODE', message }));
  expect(
    renderJUnit('kubeletadm validate', [
      { name: 'good.yaml', file: 'good.yaml', failures: [], output: ['warning'] },
      { name: 'bad.yaml', file: 'bad.yaml', failures },
      { name: 'node1', failures: [], error: 'unreachable' },
    ]),
  ).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="kubeletadm validate" tests="3" failures="1" errors="1">
  <testsuite name="kubeletadm validate" tests="3" failures="1" errors="1">
    <testcase classname="kubeletadm validate" name="good.yaml" file="good.yaml">
      <system-out>warning</system-out>
    </testcase>
    <testcase classname="kubeletadm validate" name="bad.yaml" file="bad.yaml">
      <failure type="CODE" message="&lt;a&gt; &amp; &quot;b&quot;">&lt;a&gt; &amp; &quot;b&quot;
second\\x1b[31m\ufffd</failure>
    </testcase>
    <testcase classname="kubeletadm validate" name="node1">
      <error message="unreachable">unreachable</error>
    </testcase>
  </testsuite>
</testsuites>
`);
});
