import type ssh2 from 'ssh2';

/**
 * The sessions of one connection. The client's own `exec` waits for an answer three times: for the channel, for the command's start, and then for its
 * end. Here a channel is opened ahead while something else is being waited for, and the request goes out together with all of stdin, as OpenSSH's client
 * does it: one wait is left.
 */
export interface SessionChannels {
  /**
   * A channel nothing runs on yet. Rejects when the host opens none.
   * @param next another will be wanted
   */
  open(next: boolean): Promise<ssh2.ClientChannel>;
}

/** What is used of the client beyond its public interface; a test holds that it is there (ssh2 1.17). */
interface ClientInternals {
  readonly _chanMgr: { add(onOpen: OnOpen): number };
  readonly _protocol: {
    session(channel: number, window: number, packetSize: number): void;
    exec(channel: number, command: string, wantReply: boolean): void;
  };
  readonly _sock?: { readonly writable: boolean };
}

interface ChannelInternals {
  readonly outgoing: { readonly id: number; readonly state: string };
  readonly _callbacks: ((failed: boolean | Error) => void)[];
  subtype: string | undefined;
  destroy: () => ssh2.ClientChannel;
}

interface OnOpen {
  (error: Error | undefined, channel?: ssh2.ClientChannel): void;
  type?: string;
}

/** As the client announces it, and keeps account by. */
const WINDOW_BYTES = 2 * 1024 * 1024;
const PACKET_BYTES = 32 * 1024;

/** @param client of a connection that is established */
export function sessionChannels(client: ssh2.Client): SessionChannels {
  let spare: Promise<ssh2.ClientChannel> | null = null;
  let maySpare = true;
  /** One that is refused is no failure: a host may allow few. */
  const openAhead = (): void => {
    if (spare !== null || !maySpare) return;
    const mine = openChannel(client);
    spare = mine;
    mine.catch(() => {
      maySpare = false;
      if (spare === mine) spare = null;
    });
  };
  return {
    open: (next) => {
      const ahead = spare;
      spare = null;
      const mine =
        ahead === null
          ? openChannel(client)
          : ahead.then(
              (channel) => (isOpen(channel) ? channel : openChannel(client)),
              () => openChannel(client),
            );
      // Not before: where a host allows one session, that one would be the other's.
      if (next) mine.then(openAhead, () => undefined);
      return mine;
    },
  };
}

function isOpen(channel: ssh2.ClientChannel): boolean {
  return (channel as unknown as ChannelInternals).outgoing.state === 'open';
}

function openChannel(client: ssh2.Client): Promise<ssh2.ClientChannel> {
  const { _chanMgr: channels, _protocol: protocol, _sock: socket } = client as unknown as ClientInternals;
  return new Promise((resolve, reject) => {
    if (socket?.writable !== true) throw new Error('Not connected');
    const onOpen: OnOpen = (error, channel) => (channel === undefined ? reject(error) : resolve(channel));
    onOpen.type = 'session';
    const id = channels.add(onOpen);
    if (id === -1) throw new Error('No free channels available');
    protocol.session(id, WINDOW_BYTES, PACKET_BYTES);
  });
}

/**
 * Starts a command on a channel nothing runs on and sends all of its stdin at once.
 * @param ends nothing comes after this stdin
 * @returns null when it was started, else why the host refused; listen to the channel before, its output may come with the very same packet
 */
export function startCommand(
  client: ssh2.Client,
  channel: ssh2.ClientChannel,
  { command, stdin, ends }: { readonly command: string; readonly stdin: string; readonly ends: boolean },
): Promise<Error | null> {
  const { _protocol: protocol } = client as unknown as ClientInternals;
  const internals = channel as unknown as ChannelInternals;
  return new Promise((resolve) => {
    if (!isOpen(channel)) return resolve(new Error('Channel is not open'));
    internals._callbacks.push((failed) => resolve(failed === false ? null : failed === true ? new Error('Unable to exec') : failed));
    internals.subtype = 'exec';
    channel.allowHalfOpen = true;
    let hasExited = false;
    channel.once('exit', () => {
      hasExited = true;
    });
    // The client's own ends it once more, which makes Node write an error that nobody reads. And it closes at the end of the output: until the host has said how
    // the program ended it counts the session, and to a closed channel some hosts say it no more.
    internals.destroy = () => {
      if (!channel.writableEnded) channel.end();
      if (hasExited) channel.close();
      else channel.once('exit', () => channel.close());
      return channel;
    };
    protocol.exec(internals.outgoing.id, command, true);
    if (ends) channel.end(stdin);
    else if (stdin !== '') channel.write(stdin);
  });
}
