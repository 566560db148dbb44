import { describe, expect, it } from 'vitest';
import { crashReason } from '../../../../src/base/text/crash-reason.ts';

const MODULE = `node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/opt/agent.mjs'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
`;
const TYPE = `file:///opt/agent.mjs:3
const a = x();
    ^

TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string
    at file:///opt/agent.mjs:3:1

Node.js v18.1.0
`;
const PANIC = `I1122 10:00:00.000000       1 server.go:1] starting
panic: runtime error: index out of range [1] with length 1

goroutine 1 [running]:
main.main()
	/go/src/main.go:7 +0x1d
exit status 2
`;

describe('the reason of a crash', () => {
  it.each([
    ['Node.js without its module', MODULE, "Error: Cannot find module '/opt/agent.mjs'"],
    ['Node.js with another error', TYPE, 'TypeError [ERR_INVALID_ARG_TYPE]: The "path" argument must be of type string'],
    ['Go', PANIC, 'panic: runtime error: index out of range [1] with length 1'],
    ['a loader', "node: /lib/libc.so.6: version `GLIBC_2.28' not found\n", "node: /lib/libc.so.6: version `GLIBC_2.28' not found"],
    ['several lines without an error', 'first\n\n  second\nNode.js v20.20.2\n', 'first; second'],
    ['nothing but its version', 'Node.js v20.20.2\n', 'Node.js v20.20.2'],
    ['nothing', ' \n', ''],
  ])('of %s', (_, text, reason) => {
    expect(crashReason(text)).toBe(reason);
  });

  it('is short and printable', () => {
    expect(crashReason(`Error: ${'x'.repeat(10_000)}`).length).toBeLessThanOrEqual(300);
    expect(crashReason('Error: a\u001b[31mb')).toBe('Error: a [31mb');
  });
});
