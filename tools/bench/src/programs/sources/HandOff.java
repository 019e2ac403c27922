/** Two threads hand a turn to each other by wait and notify. */
public class HandOff {
    static final Object lock = new Object();
    static int turn;

    public static void main(String[] arguments) throws InterruptedException {
        int turns = Integer.parseInt(arguments[0]);
        long started = System.nanoTime();
        Thread[] players = new Thread[2];
        for (int player = 0; player < 2; player++) {
            int mine = player;
            players[player] = new Thread(() -> play(mine, turns));
            players[player].start();
        }
        for (Thread player : players) {
            player.join();
        }
        System.out.println("turns " + turn);
        System.err.println("seconds " + (System.nanoTime() - started) / 1e9);
    }

    static void play(int mine, int turns) {
        for (int i = 0; i < turns; i++) {
            synchronized (lock) {
                while (turn % 2 != mine) {
                    try {
                        lock.wait();
                    } catch (InterruptedException unwanted) {
                        throw new AssertionError(unwanted);
                    }
                }
                turn++;
                lock.notify();
            }
        }
    }
}
